//! Aggregates of two variables: the `regr_` functions, `corr` and the covariances, by the recurrence of Youngs and Cramer.

use datum::{Fault, Result};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use super::floats;
use crate::value::Value;

/// The value of an aggregate from the sums of all rows; `None` is NULL.
type Finish = fn(&Pairs) -> Option<f64>;

const fn aggregate(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction {
        name,
        start,
        shares_state: false,
        counts_null: false,
        exact: false,
        memory: Memory::Nothing,
        extreme: None,
        finish: |value, _| value,
    }
}

/// Declares the aggregate of a function of the sums.
macro_rules! aggregates {
    ($($name:ident $text:literal = $finish:expr;)*) => {
        $(pub static $name: AggregateFunction = aggregate($text, |_| pairs($finish));)*
    };
}

aggregates! {
    REGR_SXX "regr_sxx" = |p| Some(p.sxx);
    REGR_SYY "regr_syy" = |p| Some(p.syy);
    REGR_SXY "regr_sxy" = |p| Some(p.sxy);
    REGR_AVGX "regr_avgx" = |p| Some(p.sx / p.count);
    REGR_AVGY "regr_avgy" = |p| Some(p.sy / p.count);
    REGR_SLOPE "regr_slope" = |p| (p.sxx != 0.0).then(|| p.sxy / p.sxx);
    REGR_INTERCEPT "regr_intercept" = |p| (p.sxx != 0.0).then(|| (p.sy - p.sx * p.sxy / p.sxx) / p.count);
    REGR_R2 "regr_r2" = |p| match () {
        () if p.sxx == 0.0 => None,
        () if p.syy == 0.0 => Some(1.0),
        () => Some((p.sxy * p.sxy) / (p.sxx * p.syy)),
    };
    CORR "corr" = |p| (p.sxx != 0.0 && p.syy != 0.0).then(|| p.sxy / (p.sxx * p.syy).sqrt());
    COVAR_POP "covar_pop" = |p| Some(p.sxy / p.count);
    COVAR_SAMP "covar_samp" = |p| (p.count >= 2.0).then(|| p.sxy / (p.count - 1.0));
}

pub static REGR_COUNT: AggregateFunction = aggregate("regr_count", |_| Box::new(PairCount(0)));

/// The number of rows without NULL.
#[derive(Clone, Debug)]
struct PairCount(i64);

fn is_counted(values: &[Value]) -> bool {
    !values.iter().any(Value::is_null)
}

impl Accumulator for PairCount {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.0 += i64::from(is_counted(values));
        Ok(())
    }

    fn can_remove(&self, aggregate: &Aggregate) -> bool {
        !aggregate.distinct
    }

    fn remove(&mut self, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.0 -= i64::from(is_counted(values));
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(Value::Int(self.0))
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Sums of the values, of the squares of their distances from the averages, and of the products of these distances.
#[derive(Clone)]
struct Pairs {
    result: Finish,
    count: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

fn pairs(result: Finish) -> Box<dyn Accumulator> {
    Box::new(Pairs { result, count: 0.0, sx: 0.0, sxx: 0.0, sy: 0.0, syy: 0.0, sxy: 0.0 })
}

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Pairs { result: _, count, sx, sxx, sy, syy, sxy } = self;
        f.debug_tuple("Pairs").field(&[count, sx, sxx, sy, syy, sxy]).finish()
    }
}

impl Accumulator for Pairs {
    /// `float8_regr_accum`: the dependent variable is the first argument.
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        let (y, x) = match values {
            [Value::Double(y), Value::Double(x)] => (*y, *x),
            _ if !is_counted(values) => return Ok(()),
            _ => return Err(Fault::corrupt("an argument in the form of another type")),
        };
        let before = self.clone();
        self.count += 1.0;
        self.sx += x;
        self.sy += y;
        if before.count == 0.0 {
            if !x.is_finite() {
                (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.syy, self.sxy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (from_x, from_y) = (x * self.count - self.sx, y * self.count - self.sy);
        let scale = 1.0 / (self.count * before.count);
        self.sxx += from_x * from_x * scale;
        self.syy += from_y * from_y * scale;
        self.sxy += from_x * from_y * scale;
        self.check(&before, x, y)
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        let result = if self.count < 1.0 { None } else { (self.result)(self) };
        Ok(result.map_or(Value::Null, Value::Double))
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Pairs {
    /// Refuses an overflow by finite values; infinite values make the sums of distances NaN.
    fn check(&mut self, before: &Pairs, x: f64, y: f64) -> Result<()> {
        let Pairs { sx, sxx, sy, syy, sxy, .. } = *self;
        if ![sx, sxx, sy, syy, sxy].iter().any(|sum| sum.is_infinite()) {
            return Ok(());
        }
        let is_x_finite = !before.sx.is_infinite() && !x.is_infinite();
        let is_y_finite = !before.sy.is_infinite() && !y.is_infinite();
        let overflows = ((sx.is_infinite() || sxx.is_infinite()) && is_x_finite)
            || ((sy.is_infinite() || syy.is_infinite()) && is_y_finite)
            || (sxy.is_infinite() && is_x_finite && is_y_finite);
        if overflows {
            return Err(floats::overflow().into());
        }
        let nan = |sum: f64| if sum.is_infinite() { f64::NAN } else { sum };
        (self.sxx, self.syy, self.sxy) = (nan(sxx), nan(syy), nan(sxy));
        Ok(())
    }
}
