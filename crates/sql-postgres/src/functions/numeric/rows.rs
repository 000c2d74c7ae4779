//! Rows of `pg_proc` for functions and aggregates of numbers.

use datum::decimal::Decimal;
use query::nodes::exact_number::ExactOperation;
use query::nodes::function::{Finish, Folding, Function, Run, SessionUse};

use super::random::{random, random_normal, set_seed};
use super::{
    FunctionResult as _, aggregates, argument, arithmetic, bucket, casts, floats, integers, one, regression,
    transcendental, trigonometry, two,
};
use crate::functions::{Body, PgFunction, Volatility};
use crate::types::numeric::integer::Width;
use crate::types::numeric::{checked, fit_typmod};
use crate::types::oid::{ANY, BOOL, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, Oid, VOID};

const fn row(oid: Oid, name: &'static str, arguments: &'static [Oid], result: Oid, body: Body) -> PgFunction {
    PgFunction {
        oid,
        name,
        arguments,
        variadic: 0,
        result,
        volatility: if is_volatile(&body) { Volatility::Volatile } else { Volatility::Immutable },
        is_strict: !matches!(body, Body::Aggregate(_)),
        body,
    }
}

const fn is_volatile(body: &Body) -> bool {
    matches!(body, Body::Scalar(function) if function.volatile)
}

/// A function of the values of its arguments. Its result is not rounded to a type.
const fn function(names: &'static [&'static str], run: Run) -> Function {
    Function { folding: Folding::Operator, finish: Finish::Unchanged, ..Function::new(names, run) }
}

/// A function of decimals that the core may compute itself.
const fn exact(operation: ExactOperation, names: &'static [&'static str], run: Run) -> Function {
    Function { exact_operation: Some(operation), ..function(names, run) }
}

/// A function whose results differ although its arguments do not.
const fn volatile(names: &'static [&'static str], run: Run) -> Function {
    Function { volatile: true, session: SessionUse::Written, finish: Finish::Unchanged, ..Function::new(names, run) }
}

/// The code behind a row of this name and kind.
macro_rules! body {
    (strict $name:literal [$values:ident: $code:expr]) => {{
        static FUNCTION: Function = function(&[$name], Run::Strict(|_, $values, _| $code));
        Body::Scalar(&FUNCTION)
    }};
    (pair $name:literal [$code:expr]) => {{
        static FUNCTION: Function = function(&[$name], Run::Pair(|_, a, b, _| two(a, b, $code)));
        Body::Scalar(&FUNCTION)
    }};
    (exact $name:literal [$operation:ident $code:expr]) => {{
        static FUNCTION: Function =
            exact(ExactOperation::$operation, &[$name], Run::Pair(|_, a, b, _| two(a, b, $code)));
        Body::Scalar(&FUNCTION)
    }};
    (converted $name:literal [$code:expr]) => {{
        static FUNCTION: Function = exact(ExactOperation::Convert, &[$name], Run::Strict(|_, v, _| one(v, $code)));
        Body::Scalar(&FUNCTION)
    }};
    (constant $name:literal [$code:expr]) => {{
        static FUNCTION: Function = function(&[$name], Run::Strict(|_, _, _| $code));
        Body::Scalar(&FUNCTION)
    }};
    (volatile $name:literal [$values:ident, $ctx:ident: $code:expr]) => {{
        static FUNCTION: Function = volatile(&[$name], Run::Strict(|_, $values, $ctx| $code));
        Body::Scalar(&FUNCTION)
    }};
    (aggregate $name:literal [$function:expr]) => {
        Body::Aggregate(&$function)
    };
}

/// Rows: OID, name, arguments, result; kind and code.
macro_rules! rows {
    ($($oid:literal $name:literal ($($argument:ident),*) $result:ident = $kind:ident [$($code:tt)*];)*) => {
        [$(row($oid, $name, &[$($argument),*], $result, body!($kind $name [$($code)*]))),*]
    };
}

#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &rows! {
    63 "int2eq" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a == b];
    64 "int2lt" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a < b];
    65 "int4eq" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a == b];
    66 "int4lt" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a < b];
    141 "int4mul" (INT4, INT4) INT4 = pair [|a, b| integers::multiply(Width::Int4, a, b)];
    144 "int4ne" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a != b];
    145 "int2ne" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a != b];
    146 "int2gt" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a > b];
    147 "int4gt" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a > b];
    148 "int2le" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a <= b];
    149 "int4le" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a <= b];
    150 "int4ge" (INT4, INT4) BOOL = pair [|a: i64, b: i64| a >= b];
    151 "int2ge" (INT2, INT2) BOOL = pair [|a: i64, b: i64| a >= b];
    152 "int2mul" (INT2, INT2) INT2 = pair [|a, b| integers::multiply(Width::Int2, a, b)];
    153 "int2div" (INT2, INT2) INT2 = pair [|a, b| integers::divide(Width::Int2, a, b)];
    154 "int4div" (INT4, INT4) INT4 = pair [|a, b| integers::divide(Width::Int4, a, b)];
    155 "int2mod" (INT2, INT2) INT2 = pair [integers::modulo];
    156 "int4mod" (INT4, INT4) INT4 = pair [integers::modulo];
    158 "int24eq" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a == b];
    159 "int42eq" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a == b];
    160 "int24lt" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a < b];
    161 "int42lt" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a < b];
    162 "int24gt" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a > b];
    163 "int42gt" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a > b];
    164 "int24ne" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a != b];
    165 "int42ne" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a != b];
    166 "int24le" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a <= b];
    167 "int42le" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a <= b];
    168 "int24ge" (INT2, INT4) BOOL = pair [|a: i64, b: i64| a >= b];
    169 "int42ge" (INT4, INT2) BOOL = pair [|a: i64, b: i64| a >= b];
    170 "int24mul" (INT2, INT4) INT4 = pair [|a, b| integers::multiply(Width::Int4, a, b)];
    171 "int42mul" (INT4, INT2) INT4 = pair [|a, b| integers::multiply(Width::Int4, a, b)];
    172 "int24div" (INT2, INT4) INT4 = pair [|a, b| integers::divide(Width::Int4, a, b)];
    173 "int42div" (INT4, INT2) INT4 = pair [|a, b| integers::divide(Width::Int4, a, b)];
    176 "int2pl" (INT2, INT2) INT2 = pair [|a, b| integers::add(Width::Int2, a, b)];
    177 "int4pl" (INT4, INT4) INT4 = pair [|a, b| integers::add(Width::Int4, a, b)];
    178 "int24pl" (INT2, INT4) INT4 = pair [|a, b| integers::add(Width::Int4, a, b)];
    179 "int42pl" (INT4, INT2) INT4 = pair [|a, b| integers::add(Width::Int4, a, b)];
    180 "int2mi" (INT2, INT2) INT2 = pair [|a, b| integers::subtract(Width::Int2, a, b)];
    181 "int4mi" (INT4, INT4) INT4 = pair [|a, b| integers::subtract(Width::Int4, a, b)];
    182 "int24mi" (INT2, INT4) INT4 = pair [|a, b| integers::subtract(Width::Int4, a, b)];
    183 "int42mi" (INT4, INT2) INT4 = pair [|a, b| integers::subtract(Width::Int4, a, b)];
    202 "float4mul" (FLOAT4, FLOAT4) FLOAT4 = pair [floats::multiply4];
    203 "float4div" (FLOAT4, FLOAT4) FLOAT4 = pair [floats::divide4];
    204 "float4pl" (FLOAT4, FLOAT4) FLOAT4 = pair [floats::add4];
    205 "float4mi" (FLOAT4, FLOAT4) FLOAT4 = pair [floats::subtract4];
    206 "float4um" (FLOAT4) FLOAT4 = strict [v: one(v, |a: f32| -a)];
    207 "float4abs" (FLOAT4) FLOAT4 = strict [v: one(v, f32::abs)];
    209 "float4larger" (FLOAT4, FLOAT4) FLOAT4 = pair [|a: f32, b: f32| if floats::order(a.into(), b.into()).is_gt() { a } else { b }];
    211 "float4smaller" (FLOAT4, FLOAT4) FLOAT4 = pair [|a: f32, b: f32| if floats::order(a.into(), b.into()).is_lt() { a } else { b }];
    212 "int4um" (INT4) INT4 = strict [v: one(v, |a| integers::negate(Width::Int4, a))];
    213 "int2um" (INT2) INT2 = strict [v: one(v, |a| integers::negate(Width::Int2, a))];
    216 "float8mul" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::multiply];
    217 "float8div" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::divide];
    218 "float8pl" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::add];
    219 "float8mi" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::subtract];
    220 "float8um" (FLOAT8) FLOAT8 = strict [v: one(v, |a: f64| -a)];
    221 "float8abs" (FLOAT8) FLOAT8 = strict [v: one(v, f64::abs)];
    223 "float8larger" (FLOAT8, FLOAT8) FLOAT8 = pair [|a: f64, b: f64| if floats::order(a, b).is_gt() { a } else { b }];
    224 "float8smaller" (FLOAT8, FLOAT8) FLOAT8 = pair [|a: f64, b: f64| if floats::order(a, b).is_lt() { a } else { b }];
    228 "dround" (FLOAT8) FLOAT8 = strict [v: one(v, f64::round_ties_even)];
    229 "dtrunc" (FLOAT8) FLOAT8 = strict [v: one(v, f64::trunc)];
    230 "dsqrt" (FLOAT8) FLOAT8 = strict [v: one(v, floats::sqrt)];
    231 "dcbrt" (FLOAT8) FLOAT8 = strict [v: one(v, floats::cbrt)];
    232 "dpow" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::power];
    233 "dexp" (FLOAT8) FLOAT8 = strict [v: one(v, floats::exp)];
    234 "dlog1" (FLOAT8) FLOAT8 = strict [v: one(v, floats::ln)];
    235 "float8" (INT2) FLOAT8 = strict [v: one(v, |a: i64| a as f64)];
    236 "float4" (INT2) FLOAT4 = strict [v: one(v, |a: i64| a as f32)];
    237 "int2" (FLOAT8) INT2 = strict [v: one(v, |a| floats::to_integer(Width::Int2, a))];
    238 "int2" (FLOAT4) INT2 = strict [v: one(v, |a: f32| floats::to_integer(Width::Int2, a.into()))];
    279 "float48mul" (FLOAT4, FLOAT8) FLOAT8 = pair [|a: f32, b: f64| floats::multiply(a.into(), b)];
    280 "float48div" (FLOAT4, FLOAT8) FLOAT8 = pair [|a: f32, b: f64| floats::divide(a.into(), b)];
    281 "float48pl" (FLOAT4, FLOAT8) FLOAT8 = pair [|a: f32, b: f64| floats::add(a.into(), b)];
    282 "float48mi" (FLOAT4, FLOAT8) FLOAT8 = pair [|a: f32, b: f64| floats::subtract(a.into(), b)];
    283 "float84mul" (FLOAT8, FLOAT4) FLOAT8 = pair [|a: f64, b: f32| floats::multiply(a, b.into())];
    284 "float84div" (FLOAT8, FLOAT4) FLOAT8 = pair [|a: f64, b: f32| floats::divide(a, b.into())];
    285 "float84pl" (FLOAT8, FLOAT4) FLOAT8 = pair [|a: f64, b: f32| floats::add(a, b.into())];
    286 "float84mi" (FLOAT8, FLOAT4) FLOAT8 = pair [|a: f64, b: f32| floats::subtract(a, b.into())];
    287 "float4eq" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_eq()];
    288 "float4ne" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_ne()];
    289 "float4lt" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_lt()];
    290 "float4le" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_le()];
    291 "float4gt" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_gt()];
    292 "float4ge" (FLOAT4, FLOAT4) BOOL = pair [|a: f32, b: f32| floats::order(a.into(), b.into()).is_ge()];
    293 "float8eq" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_eq()];
    294 "float8ne" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_ne()];
    295 "float8lt" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_lt()];
    296 "float8le" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_le()];
    297 "float8gt" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_gt()];
    298 "float8ge" (FLOAT8, FLOAT8) BOOL = pair [|a: f64, b: f64| floats::order(a, b).is_ge()];
    299 "float48eq" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_eq()];
    300 "float48ne" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_ne()];
    301 "float48lt" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_lt()];
    302 "float48le" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_le()];
    303 "float48gt" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_gt()];
    304 "float48ge" (FLOAT4, FLOAT8) BOOL = pair [|a: f32, b: f64| floats::order(a.into(), b).is_ge()];
    305 "float84eq" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_eq()];
    306 "float84ne" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_ne()];
    307 "float84lt" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_lt()];
    308 "float84le" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_le()];
    309 "float84gt" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_gt()];
    310 "float84ge" (FLOAT8, FLOAT4) BOOL = pair [|a: f64, b: f32| floats::order(a, b.into()).is_ge()];
    311 "float8" (FLOAT4) FLOAT8 = strict [v: one(v, |a: f32| f64::from(a))];
    312 "float4" (FLOAT8) FLOAT4 = strict [v: one(v, floats::to_float4)];
    313 "int4" (INT2) INT4 = strict [v: one(v, |a: i64| a)];
    314 "int2" (INT4) INT2 = strict [v: one(v, |a| Width::Int2.checked(a))];
    316 "float8" (INT4) FLOAT8 = strict [v: one(v, |a: i64| a as f64)];
    317 "int4" (FLOAT8) INT4 = strict [v: one(v, |a| floats::to_integer(Width::Int4, a))];
    318 "float4" (INT4) FLOAT4 = strict [v: one(v, |a: i64| a as f32)];
    319 "int4" (FLOAT4) INT4 = strict [v: one(v, |a: f32| floats::to_integer(Width::Int4, a.into()))];
    320 "width_bucket" (FLOAT8, FLOAT8, FLOAT8, INT4) INT4 = strict [v: bucket(v, floats::width_bucket)];
    350 "btint2cmp" (INT2, INT2) INT4 = pair [|a: i64, b: i64| a - b];
    351 "btint4cmp" (INT4, INT4) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    354 "btfloat4cmp" (FLOAT4, FLOAT4) INT4 = pair [|a: f32, b: f32| floats::order(a.into(), b.into())];
    355 "btfloat8cmp" (FLOAT8, FLOAT8) INT4 = pair [|a: f64, b: f64| floats::order(a, b)];
    462 "int8um" (INT8) INT8 = strict [v: one(v, |a| integers::negate(Width::Int8, a))];
    463 "int8pl" (INT8, INT8) INT8 = pair [|a, b| integers::add(Width::Int8, a, b)];
    464 "int8mi" (INT8, INT8) INT8 = pair [|a, b| integers::subtract(Width::Int8, a, b)];
    465 "int8mul" (INT8, INT8) INT8 = pair [|a, b| integers::multiply(Width::Int8, a, b)];
    466 "int8div" (INT8, INT8) INT8 = pair [|a, b| integers::divide(Width::Int8, a, b)];
    467 "int8eq" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a == b];
    468 "int8ne" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a != b];
    469 "int8lt" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a < b];
    470 "int8gt" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a > b];
    471 "int8le" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a <= b];
    472 "int8ge" (INT8, INT8) BOOL = pair [|a: i64, b: i64| a >= b];
    474 "int84eq" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a == b];
    475 "int84ne" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a != b];
    476 "int84lt" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a < b];
    477 "int84gt" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a > b];
    478 "int84le" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a <= b];
    479 "int84ge" (INT8, INT4) BOOL = pair [|a: i64, b: i64| a >= b];
    480 "int4" (INT8) INT4 = strict [v: one(v, |a| Width::Int4.checked(a))];
    481 "int8" (INT4) INT8 = strict [v: one(v, |a: i64| a)];
    482 "float8" (INT8) FLOAT8 = strict [v: one(v, |a: i64| a as f64)];
    483 "int8" (FLOAT8) INT8 = strict [v: one(v, |a| floats::to_integer(Width::Int8, a))];
    652 "float4" (INT8) FLOAT4 = strict [v: one(v, |a: i64| a as f32)];
    653 "int8" (FLOAT4) INT8 = strict [v: one(v, |a: f32| floats::to_integer(Width::Int8, a.into()))];
    714 "int2" (INT8) INT2 = strict [v: one(v, |a| Width::Int2.checked(a))];
    754 "int8" (INT2) INT8 = strict [v: one(v, |a: i64| a)];
    766 "int4inc" (INT4) INT4 = strict [v: one(v, |a| integers::add(Width::Int4, a, 1))];
    768 "int4larger" (INT4, INT4) INT4 = pair [i64::max];
    769 "int4smaller" (INT4, INT4) INT4 = pair [i64::min];
    770 "int2larger" (INT2, INT2) INT2 = pair [i64::max];
    771 "int2smaller" (INT2, INT2) INT2 = pair [i64::min];
    837 "int82pl" (INT8, INT2) INT8 = pair [|a, b| integers::add(Width::Int8, a, b)];
    838 "int82mi" (INT8, INT2) INT8 = pair [|a, b| integers::subtract(Width::Int8, a, b)];
    839 "int82mul" (INT8, INT2) INT8 = pair [|a, b| integers::multiply(Width::Int8, a, b)];
    840 "int82div" (INT8, INT2) INT8 = pair [|a, b| integers::divide(Width::Int8, a, b)];
    841 "int28pl" (INT2, INT8) INT8 = pair [|a, b| integers::add(Width::Int8, a, b)];
    842 "btint8cmp" (INT8, INT8) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    852 "int48eq" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a == b];
    853 "int48ne" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a != b];
    854 "int48lt" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a < b];
    855 "int48gt" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a > b];
    856 "int48le" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a <= b];
    857 "int48ge" (INT4, INT8) BOOL = pair [|a: i64, b: i64| a >= b];
    940 "mod" (INT2, INT2) INT2 = pair [integers::modulo];
    941 "mod" (INT4, INT4) INT4 = pair [integers::modulo];
    942 "int28mi" (INT2, INT8) INT8 = pair [|a, b| integers::subtract(Width::Int8, a, b)];
    943 "int28mul" (INT2, INT8) INT8 = pair [|a, b| integers::multiply(Width::Int8, a, b)];
    945 "int8mod" (INT8, INT8) INT8 = pair [integers::modulo];
    947 "mod" (INT8, INT8) INT8 = pair [integers::modulo];
    948 "int28div" (INT2, INT8) INT8 = pair [|a, b| integers::divide(Width::Int8, a, b)];
    1194 "log10" (FLOAT8) FLOAT8 = strict [v: one(v, floats::log10)];
    1219 "int8inc" (INT8) INT8 = strict [v: one(v, |a| integers::add(Width::Int8, a, 1))];
    1230 "int8abs" (INT8) INT8 = strict [v: one(v, |a| integers::abs(Width::Int8, a))];
    1236 "int8larger" (INT8, INT8) INT8 = pair [i64::max];
    1237 "int8smaller" (INT8, INT8) INT8 = pair [i64::min];
    1251 "int4abs" (INT4) INT4 = strict [v: one(v, |a| integers::abs(Width::Int4, a))];
    1253 "int2abs" (INT2) INT2 = strict [v: one(v, |a| integers::abs(Width::Int2, a))];
    1274 "int84pl" (INT8, INT4) INT8 = pair [|a, b| integers::add(Width::Int8, a, b)];
    1275 "int84mi" (INT8, INT4) INT8 = pair [|a, b| integers::subtract(Width::Int8, a, b)];
    1276 "int84mul" (INT8, INT4) INT8 = pair [|a, b| integers::multiply(Width::Int8, a, b)];
    1277 "int84div" (INT8, INT4) INT8 = pair [|a, b| integers::divide(Width::Int8, a, b)];
    1278 "int48pl" (INT4, INT8) INT8 = pair [|a, b| integers::add(Width::Int8, a, b)];
    1279 "int48mi" (INT4, INT8) INT8 = pair [|a, b| integers::subtract(Width::Int8, a, b)];
    1280 "int48mul" (INT4, INT8) INT8 = pair [|a, b| integers::multiply(Width::Int8, a, b)];
    1281 "int48div" (INT4, INT8) INT8 = pair [|a, b| integers::divide(Width::Int8, a, b)];
    1339 "dlog10" (FLOAT8) FLOAT8 = strict [v: one(v, floats::log10)];
    1340 "log" (FLOAT8) FLOAT8 = strict [v: one(v, floats::log10)];
    1341 "ln" (FLOAT8) FLOAT8 = strict [v: one(v, floats::ln)];
    1342 "round" (FLOAT8) FLOAT8 = strict [v: one(v, f64::round_ties_even)];
    1343 "trunc" (FLOAT8) FLOAT8 = strict [v: one(v, f64::trunc)];
    1344 "sqrt" (FLOAT8) FLOAT8 = strict [v: one(v, floats::sqrt)];
    1345 "cbrt" (FLOAT8) FLOAT8 = strict [v: one(v, floats::cbrt)];
    1346 "pow" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::power];
    1347 "exp" (FLOAT8) FLOAT8 = strict [v: one(v, floats::exp)];
    1368 "power" (FLOAT8, FLOAT8) FLOAT8 = pair [floats::power];
    1376 "factorial" (INT8) NUMERIC = strict [v: one(v, arithmetic::factorial)];
    1394 "abs" (FLOAT4) FLOAT4 = strict [v: one(v, f32::abs)];
    1395 "abs" (FLOAT8) FLOAT8 = strict [v: one(v, f64::abs)];
    1396 "abs" (INT8) INT8 = strict [v: one(v, |a| integers::abs(Width::Int8, a))];
    1397 "abs" (INT4) INT4 = strict [v: one(v, |a| integers::abs(Width::Int4, a))];
    1398 "abs" (INT2) INT2 = strict [v: one(v, |a| integers::abs(Width::Int2, a))];
    1481 "log10" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::log10)];
    1600 "asin" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::asin)];
    1601 "acos" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::acos)];
    1602 "atan" (FLOAT8) FLOAT8 = strict [v: one(v, f64::atan)];
    1603 "atan2" (FLOAT8, FLOAT8) FLOAT8 = pair [f64::atan2];
    1604 "sin" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::sin)];
    1605 "cos" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::cos)];
    1606 "tan" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::tan)];
    1607 "cot" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::cot)];
    1608 "degrees" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::degrees)];
    1609 "radians" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::radians)];
    1610 "pi" () FLOAT8 = constant [std::f64::consts::PI.value()];
    1703 "numeric" (NUMERIC, INT4) NUMERIC = pair [|a: &Decimal, typmod: i64| fit_typmod(a.clone(), typmod as i32).and_then(checked)];
    1704 "numeric_abs" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::abs)];
    1705 "abs" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::abs)];
    1706 "sign" (NUMERIC) NUMERIC = strict [v: one(v, arithmetic::sign)];
    1707 "round" (NUMERIC, INT4) NUMERIC = pair [arithmetic::round];
    1708 "round" (NUMERIC) NUMERIC = strict [v: one(v, |a: &Decimal| arithmetic::round(a, 0))];
    1709 "trunc" (NUMERIC, INT4) NUMERIC = pair [arithmetic::truncate];
    1710 "trunc" (NUMERIC) NUMERIC = strict [v: one(v, |a: &Decimal| arithmetic::truncate(a, 0))];
    1711 "ceil" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::ceiling)];
    1712 "floor" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::floor)];
    1718 "numeric_eq" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a == b];
    1719 "numeric_ne" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a != b];
    1720 "numeric_gt" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a > b];
    1721 "numeric_ge" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a >= b];
    1722 "numeric_lt" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a < b];
    1723 "numeric_le" (NUMERIC, NUMERIC) BOOL = pair [|a: &Decimal, b: &Decimal| a <= b];
    1724 "numeric_add" (NUMERIC, NUMERIC) NUMERIC = exact [Add arithmetic::add];
    1725 "numeric_sub" (NUMERIC, NUMERIC) NUMERIC = exact [Subtract arithmetic::subtract];
    1726 "numeric_mul" (NUMERIC, NUMERIC) NUMERIC = exact [Multiply arithmetic::multiply];
    1727 "numeric_div" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::divide];
    1728 "mod" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::modulo];
    1729 "numeric_mod" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::modulo];
    1730 "sqrt" (NUMERIC) NUMERIC = strict [v: one(v, arithmetic::sqrt)];
    1731 "numeric_sqrt" (NUMERIC) NUMERIC = strict [v: one(v, arithmetic::sqrt)];
    1732 "exp" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::exp)];
    1733 "numeric_exp" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::exp)];
    1734 "ln" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::ln)];
    1735 "numeric_ln" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::ln)];
    1736 "log" (NUMERIC, NUMERIC) NUMERIC = pair [transcendental::log];
    1737 "numeric_log" (NUMERIC, NUMERIC) NUMERIC = pair [transcendental::log];
    1738 "pow" (NUMERIC, NUMERIC) NUMERIC = pair [transcendental::power];
    1739 "numeric_power" (NUMERIC, NUMERIC) NUMERIC = pair [transcendental::power];
    1740 "numeric" (INT4) NUMERIC = converted [|a: i64| Decimal::from(a)];
    1741 "log" (NUMERIC) NUMERIC = strict [v: one(v, transcendental::log10)];
    1742 "numeric" (FLOAT4) NUMERIC = strict [v: one(v, casts::of_float::<f32>)];
    1743 "numeric" (FLOAT8) NUMERIC = strict [v: one(v, casts::of_float::<f64>)];
    1744 "int4" (NUMERIC) INT4 = strict [v: one(v, |a: &Decimal| casts::to_integer(Width::Int4, a))];
    1745 "float4" (NUMERIC) FLOAT4 = strict [v: one(v, casts::to_float::<f32>)];
    1746 "float8" (NUMERIC) FLOAT8 = strict [v: one(v, casts::to_float::<f64>)];
    1764 "numeric_inc" (NUMERIC) NUMERIC = strict [v: one(v, |a: &Decimal| arithmetic::add(a, &Decimal::from(1i64)))];
    1766 "numeric_smaller" (NUMERIC, NUMERIC) NUMERIC = pair [|a: &Decimal, b: &Decimal| if a < b { a.clone() } else { b.clone() }];
    1767 "numeric_larger" (NUMERIC, NUMERIC) NUMERIC = pair [|a: &Decimal, b: &Decimal| if a > b { a.clone() } else { b.clone() }];
    1769 "numeric_cmp" (NUMERIC, NUMERIC) INT4 = pair [|a: &Decimal, b: &Decimal| a.cmp(b)];
    1771 "numeric_uminus" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::negated)];
    1779 "int8" (NUMERIC) INT8 = strict [v: one(v, |a: &Decimal| casts::to_integer(Width::Int8, a))];
    1781 "numeric" (INT8) NUMERIC = converted [|a: i64| Decimal::from(a)];
    1782 "numeric" (INT2) NUMERIC = converted [|a: i64| Decimal::from(a)];
    1783 "int2" (NUMERIC) INT2 = strict [v: one(v, |a: &Decimal| casts::to_integer(Width::Int2, a))];
    1850 "int28eq" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a == b];
    1851 "int28ne" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a != b];
    1852 "int28lt" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a < b];
    1853 "int28gt" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a > b];
    1854 "int28le" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a <= b];
    1855 "int28ge" (INT2, INT8) BOOL = pair [|a: i64, b: i64| a >= b];
    1856 "int82eq" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a == b];
    1857 "int82ne" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a != b];
    1858 "int82lt" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a < b];
    1859 "int82gt" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a > b];
    1860 "int82le" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a <= b];
    1861 "int82ge" (INT8, INT2) BOOL = pair [|a: i64, b: i64| a >= b];
    1892 "int2and" (INT2, INT2) INT2 = pair [|a: i64, b: i64| a & b];
    1893 "int2or" (INT2, INT2) INT2 = pair [|a: i64, b: i64| a | b];
    1894 "int2xor" (INT2, INT2) INT2 = pair [|a: i64, b: i64| a ^ b];
    1895 "int2not" (INT2) INT2 = strict [v: one(v, |a: i64| !a)];
    1896 "int2shl" (INT2, INT4) INT2 = pair [|a, b| integers::shift_left(Width::Int2, a, b)];
    1897 "int2shr" (INT2, INT4) INT2 = pair [|a, b| integers::shift_right(Width::Int2, a, b)];
    1898 "int4and" (INT4, INT4) INT4 = pair [|a: i64, b: i64| a & b];
    1899 "int4or" (INT4, INT4) INT4 = pair [|a: i64, b: i64| a | b];
    1900 "int4xor" (INT4, INT4) INT4 = pair [|a: i64, b: i64| a ^ b];
    1901 "int4not" (INT4) INT4 = strict [v: one(v, |a: i64| !a)];
    1902 "int4shl" (INT4, INT4) INT4 = pair [|a, b| integers::shift_left(Width::Int4, a, b)];
    1903 "int4shr" (INT4, INT4) INT4 = pair [|a, b| integers::shift_right(Width::Int4, a, b)];
    1904 "int8and" (INT8, INT8) INT8 = pair [|a: i64, b: i64| a & b];
    1905 "int8or" (INT8, INT8) INT8 = pair [|a: i64, b: i64| a | b];
    1906 "int8xor" (INT8, INT8) INT8 = pair [|a: i64, b: i64| a ^ b];
    1907 "int8not" (INT8) INT8 = strict [v: one(v, |a: i64| !a)];
    1908 "int8shl" (INT8, INT4) INT8 = pair [|a, b| integers::shift_left(Width::Int8, a, b)];
    1909 "int8shr" (INT8, INT4) INT8 = pair [|a, b| integers::shift_right(Width::Int8, a, b)];
    1910 "int8up" (INT8) INT8 = strict [v: one(v, |a: i64| a)];
    1911 "int2up" (INT2) INT2 = strict [v: one(v, |a: i64| a)];
    1912 "int4up" (INT4) INT4 = strict [v: one(v, |a: i64| a)];
    1913 "float4up" (FLOAT4) FLOAT4 = strict [v: one(v, |a: f32| a)];
    1914 "float8up" (FLOAT8) FLOAT8 = strict [v: one(v, |a: f64| a)];
    1915 "numeric_uplus" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::clone)];
    1973 "div" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::divide_whole];
    1980 "numeric_div_trunc" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::divide_whole];
    2167 "ceiling" (NUMERIC) NUMERIC = strict [v: one(v, Decimal::ceiling)];
    2169 "power" (NUMERIC, NUMERIC) NUMERIC = pair [transcendental::power];
    2170 "width_bucket" (NUMERIC, NUMERIC, NUMERIC, INT4) INT4 = strict [v: bucket(v, arithmetic::width_bucket)];
    2188 "btint48cmp" (INT4, INT8) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2189 "btint84cmp" (INT8, INT4) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2190 "btint24cmp" (INT2, INT4) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2191 "btint42cmp" (INT4, INT2) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2192 "btint28cmp" (INT2, INT8) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2193 "btint82cmp" (INT8, INT2) INT4 = pair [|a: i64, b: i64| a.cmp(&b)];
    2194 "btfloat48cmp" (FLOAT4, FLOAT8) INT4 = pair [|a: f32, b: f64| floats::order(a.into(), b)];
    2195 "btfloat84cmp" (FLOAT8, FLOAT4) INT4 = pair [|a: f64, b: f32| floats::order(a, b.into())];
    2308 "ceil" (FLOAT8) FLOAT8 = strict [v: one(v, f64::ceil)];
    2309 "floor" (FLOAT8) FLOAT8 = strict [v: one(v, f64::floor)];
    2310 "sign" (FLOAT8) FLOAT8 = strict [v: one(v, floats::sign)];
    2320 "ceiling" (FLOAT8) FLOAT8 = strict [v: one(v, f64::ceil)];
    2462 "sinh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::sinh)];
    2463 "cosh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::cosh)];
    2464 "tanh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::tanh)];
    2465 "asinh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::asinh)];
    2466 "acosh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::acosh)];
    2467 "atanh" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::atanh)];
    2731 "asind" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::asind)];
    2732 "acosd" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::acosd)];
    2733 "atand" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::atand)];
    2734 "atan2d" (FLOAT8, FLOAT8) FLOAT8 = pair [trigonometry::atan2d];
    2735 "sind" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::sind)];
    2736 "cosd" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::cosd)];
    2737 "tand" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::tand)];
    2738 "cotd" (FLOAT8) FLOAT8 = strict [v: one(v, trigonometry::cotd)];
    3281 "scale" (NUMERIC) INT4 = strict [v: one(v, |a: &Decimal| a.is_finite().then(|| a.scale()))];
    3546 "int8dec" (INT8) INT8 = strict [v: one(v, |a| integers::subtract(Width::Int8, a, 1))];
    5042 "min_scale" (NUMERIC) INT4 = strict [v: one(v, arithmetic::min_scale)];
    5043 "trim_scale" (NUMERIC) NUMERIC = strict [v: one(v, arithmetic::trim_scale)];
    5044 "gcd" (INT4, INT4) INT4 = pair [|a, b| integers::gcd(Width::Int4, a, b)];
    5045 "gcd" (INT8, INT8) INT8 = pair [|a, b| integers::gcd(Width::Int8, a, b)];
    5046 "lcm" (INT4, INT4) INT4 = pair [|a, b| integers::lcm(Width::Int4, a, b)];
    5047 "lcm" (INT8, INT8) INT8 = pair [|a, b| integers::lcm(Width::Int8, a, b)];
    5048 "gcd" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::gcd];
    5049 "lcm" (NUMERIC, NUMERIC) NUMERIC = pair [arithmetic::lcm];
    1598 "random" () FLOAT8 = volatile [_values, ctx: random(ctx).value()];
    1599 "setseed" (FLOAT8) VOID = volatile [v, ctx: set_seed(argument(v, 0)?, ctx).value()];
    6212 "random_normal" (FLOAT8, FLOAT8) FLOAT8 = volatile [v, ctx: random_normal(argument(v, 0)?, argument(v, 1)?, ctx).value()];
    2100 "avg" (INT8) NUMERIC = aggregate [aggregates::AVG];
    2101 "avg" (INT4) NUMERIC = aggregate [aggregates::AVG];
    2102 "avg" (INT2) NUMERIC = aggregate [aggregates::AVG];
    2103 "avg" (NUMERIC) NUMERIC = aggregate [aggregates::AVG];
    2104 "avg" (FLOAT4) FLOAT8 = aggregate [aggregates::AVG_FLOAT];
    2105 "avg" (FLOAT8) FLOAT8 = aggregate [aggregates::AVG_FLOAT];
    2107 "sum" (INT8) NUMERIC = aggregate [aggregates::SUM];
    2108 "sum" (INT4) INT8 = aggregate [aggregates::SUM_SHORT];
    2109 "sum" (INT2) INT8 = aggregate [aggregates::SUM_SHORT];
    2110 "sum" (FLOAT4) FLOAT4 = aggregate [aggregates::SUM_FLOAT4];
    2111 "sum" (FLOAT8) FLOAT8 = aggregate [aggregates::SUM_FLOAT8];
    2114 "sum" (NUMERIC) NUMERIC = aggregate [aggregates::SUM];
    2115 "max" (INT8) INT8 = aggregate [aggregates::MAX];
    2116 "max" (INT4) INT4 = aggregate [aggregates::MAX];
    2117 "max" (INT2) INT2 = aggregate [aggregates::MAX];
    2119 "max" (FLOAT4) FLOAT4 = aggregate [aggregates::MAX];
    2120 "max" (FLOAT8) FLOAT8 = aggregate [aggregates::MAX];
    2130 "max" (NUMERIC) NUMERIC = aggregate [aggregates::MAX];
    2131 "min" (INT8) INT8 = aggregate [aggregates::MIN];
    2132 "min" (INT4) INT4 = aggregate [aggregates::MIN];
    2133 "min" (INT2) INT2 = aggregate [aggregates::MIN];
    2135 "min" (FLOAT4) FLOAT4 = aggregate [aggregates::MIN];
    2136 "min" (FLOAT8) FLOAT8 = aggregate [aggregates::MIN];
    2146 "min" (NUMERIC) NUMERIC = aggregate [aggregates::MIN];
    2147 "count" (ANY) INT8 = aggregate [aggregates::COUNT];
    2148 "variance" (INT8) NUMERIC = aggregate [aggregates::VARIANCE];
    2149 "variance" (INT4) NUMERIC = aggregate [aggregates::VARIANCE];
    2150 "variance" (INT2) NUMERIC = aggregate [aggregates::VARIANCE];
    2151 "variance" (FLOAT4) FLOAT8 = aggregate [aggregates::VARIANCE_FLOAT];
    2152 "variance" (FLOAT8) FLOAT8 = aggregate [aggregates::VARIANCE_FLOAT];
    2153 "variance" (NUMERIC) NUMERIC = aggregate [aggregates::VARIANCE];
    2154 "stddev" (INT8) NUMERIC = aggregate [aggregates::STDDEV];
    2155 "stddev" (INT4) NUMERIC = aggregate [aggregates::STDDEV];
    2156 "stddev" (INT2) NUMERIC = aggregate [aggregates::STDDEV];
    2157 "stddev" (FLOAT4) FLOAT8 = aggregate [aggregates::STDDEV_FLOAT];
    2158 "stddev" (FLOAT8) FLOAT8 = aggregate [aggregates::STDDEV_FLOAT];
    2159 "stddev" (NUMERIC) NUMERIC = aggregate [aggregates::STDDEV];
    2236 "bit_and" (INT2) INT2 = aggregate [aggregates::BIT_AND];
    2237 "bit_or" (INT2) INT2 = aggregate [aggregates::BIT_OR];
    2238 "bit_and" (INT4) INT4 = aggregate [aggregates::BIT_AND];
    2239 "bit_or" (INT4) INT4 = aggregate [aggregates::BIT_OR];
    2240 "bit_and" (INT8) INT8 = aggregate [aggregates::BIT_AND];
    2241 "bit_or" (INT8) INT8 = aggregate [aggregates::BIT_OR];
    2641 "var_samp" (INT8) NUMERIC = aggregate [aggregates::VAR_SAMP];
    2642 "var_samp" (INT4) NUMERIC = aggregate [aggregates::VAR_SAMP];
    2643 "var_samp" (INT2) NUMERIC = aggregate [aggregates::VAR_SAMP];
    2644 "var_samp" (FLOAT4) FLOAT8 = aggregate [aggregates::VAR_SAMP_FLOAT];
    2645 "var_samp" (FLOAT8) FLOAT8 = aggregate [aggregates::VAR_SAMP_FLOAT];
    2646 "var_samp" (NUMERIC) NUMERIC = aggregate [aggregates::VAR_SAMP];
    2712 "stddev_samp" (INT8) NUMERIC = aggregate [aggregates::STDDEV_SAMP];
    2713 "stddev_samp" (INT4) NUMERIC = aggregate [aggregates::STDDEV_SAMP];
    2714 "stddev_samp" (INT2) NUMERIC = aggregate [aggregates::STDDEV_SAMP];
    2715 "stddev_samp" (FLOAT4) FLOAT8 = aggregate [aggregates::STDDEV_SAMP_FLOAT];
    2716 "stddev_samp" (FLOAT8) FLOAT8 = aggregate [aggregates::STDDEV_SAMP_FLOAT];
    2717 "stddev_samp" (NUMERIC) NUMERIC = aggregate [aggregates::STDDEV_SAMP];
    2718 "var_pop" (INT8) NUMERIC = aggregate [aggregates::VAR_POP];
    2719 "var_pop" (INT4) NUMERIC = aggregate [aggregates::VAR_POP];
    2720 "var_pop" (INT2) NUMERIC = aggregate [aggregates::VAR_POP];
    2721 "var_pop" (FLOAT4) FLOAT8 = aggregate [aggregates::VAR_POP_FLOAT];
    2722 "var_pop" (FLOAT8) FLOAT8 = aggregate [aggregates::VAR_POP_FLOAT];
    2723 "var_pop" (NUMERIC) NUMERIC = aggregate [aggregates::VAR_POP];
    2724 "stddev_pop" (INT8) NUMERIC = aggregate [aggregates::STDDEV_POP];
    2725 "stddev_pop" (INT4) NUMERIC = aggregate [aggregates::STDDEV_POP];
    2726 "stddev_pop" (INT2) NUMERIC = aggregate [aggregates::STDDEV_POP];
    2727 "stddev_pop" (FLOAT4) FLOAT8 = aggregate [aggregates::STDDEV_POP_FLOAT];
    2728 "stddev_pop" (FLOAT8) FLOAT8 = aggregate [aggregates::STDDEV_POP_FLOAT];
    2729 "stddev_pop" (NUMERIC) NUMERIC = aggregate [aggregates::STDDEV_POP];
    2803 "count" () INT8 = aggregate [aggregates::COUNT];
    2818 "regr_count" (FLOAT8, FLOAT8) INT8 = aggregate [regression::REGR_COUNT];
    2819 "regr_sxx" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_SXX];
    2820 "regr_syy" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_SYY];
    2821 "regr_sxy" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_SXY];
    2822 "regr_avgx" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_AVGX];
    2823 "regr_avgy" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_AVGY];
    2824 "regr_r2" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_R2];
    2825 "regr_slope" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_SLOPE];
    2826 "regr_intercept" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::REGR_INTERCEPT];
    2827 "covar_pop" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::COVAR_POP];
    2828 "covar_samp" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::COVAR_SAMP];
    2829 "corr" (FLOAT8, FLOAT8) FLOAT8 = aggregate [regression::CORR];
    6164 "bit_xor" (INT2) INT2 = aggregate [aggregates::BIT_XOR];
    6165 "bit_xor" (INT4) INT4 = aggregate [aggregates::BIT_XOR];
    6166 "bit_xor" (INT8) INT8 = aggregate [aggregates::BIT_XOR];
};
