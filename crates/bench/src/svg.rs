//! Bar charts as SVG: panels side by side, groups along the bottom, one bar per series.
//!
//! Plain shapes and text only, on a white ground, so that every viewer of Markdown shows them.

use std::fmt::Write;

use crate::table::grouped;

pub struct Chart {
    pub title: String,
    /// The quantity that the bars measure, with its unit.
    pub unit: String,
    pub series: Vec<String>,
    pub panels: Vec<Panel>,
    /// One logarithmic axis for all panels, for values that lie decades apart; otherwise each panel has its own from zero.
    pub logarithmic: bool,
}

pub struct Panel {
    pub title: String,
    /// Name of the group and one value for each series; a value of zero has no bar.
    pub groups: Vec<(String, Vec<f64>)>,
}

const COLORS: [&str; 7] = ["#1b6ca8", "#c8553d", "#e0a458", "#7a8a99", "#4d9078", "#8e5572", "#2f3e46"];
const PANEL_WIDTH: f64 = 400.0;
const PANEL_HEIGHT: f64 = 220.0;
const PANELS_PER_LINE: usize = 3;
const LEFT: f64 = 56.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 42.0;
const HEADER: f64 = 58.0;

impl Chart {
    pub fn svg(&self) -> String {
        let across = self.panels.len().clamp(1, PANELS_PER_LINE);
        let down = self.panels.len().div_ceil(across);
        let (width, height) = (PANEL_WIDTH * across as f64, HEADER + PANEL_HEIGHT * down as f64);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"#333\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        text(&mut out, 12.0, 20.0, "start", 14, &format!("{} ({})", self.title, self.unit));
        let mut x = 12.0;
        for (index, name) in self.series.iter().enumerate() {
            rectangle(&mut out, x, 32.0, 10.0, 10.0, COLORS[index % COLORS.len()]);
            text(&mut out, x + 14.0, 41.0, "start", 11, name);
            x += 30.0 + 6.5 * name.len() as f64;
        }
        let common = Axis::over(self.panels.iter().flat_map(Panel::values), self.logarithmic);
        for (index, panel) in self.panels.iter().enumerate() {
            let left = PANEL_WIDTH * (index % across) as f64;
            let top = HEADER + PANEL_HEIGHT * (index / across) as f64;
            let own = (!self.logarithmic).then(|| Axis::over(panel.values(), false));
            panel.draw(&mut out, left, top, own.as_ref().unwrap_or(&common));
        }
        out + "</svg>\n"
    }
}

impl Panel {
    fn values(&self) -> impl Iterator<Item = &f64> {
        self.groups.iter().flat_map(|(_, values)| values)
    }

    fn draw(&self, out: &mut String, left: f64, top: f64, axis: &Axis) {
        let (x0, y0) = (left + LEFT, top + TOP);
        let (width, height) = (PANEL_WIDTH - LEFT - 14.0, PANEL_HEIGHT - TOP - BOTTOM);
        text(out, x0, top + 22.0, "start", 12, &self.title);
        for tick in axis.ticks() {
            let y = y0 + height * (1.0 - axis.share(tick));
            rectangle(out, x0, y, width, 0.5, "#ccc");
            text(out, x0 - 5.0, y + 4.0, "end", 10, &short(tick));
        }
        let group_width = width / self.groups.len().max(1) as f64;
        for (index, (name, values)) in self.groups.iter().enumerate() {
            let from = x0 + group_width * index as f64;
            let bar = group_width * 0.8 / values.len().max(1) as f64;
            for (series, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let high = height * axis.share(*value);
                let x = from + group_width * 0.1 + bar * series as f64;
                rectangle(out, x, y0 + height - high, bar * 0.92, high, COLORS[series % COLORS.len()]);
                if self.groups.len() == 1 {
                    let value = grouped(*value, if *value < 100.0 { 2 } else { 0 });
                    text(out, x + bar * 0.46, y0 + height - high - 3.0, "middle", 10, &value);
                }
            }
            for (line, part) in name.split('\n').enumerate() {
                text(out, from + group_width / 2.0, y0 + height + 14.0 + 12.0 * line as f64, "middle", 10, part);
            }
        }
        rectangle(out, x0, y0 + height, width, 1.0, "#666");
    }
}

/// From the foot of the bars to the highest value, linear from zero or logarithmic from the decade of the lowest.
struct Axis {
    min: f64,
    max: f64,
    logarithmic: bool,
}

impl Axis {
    fn over<'a>(values: impl Iterator<Item = &'a f64>, logarithmic: bool) -> Axis {
        let (mut min, mut max) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| **value > 0.0) {
            min = min.min(*value);
            max = max.max(*value);
        }
        if max == 0.0 {
            return Axis { min: 0.0, max: 1.0, logarithmic: false };
        }
        if logarithmic {
            // A value at the foot would have no height: the axis begins below the lowest.
            Axis { min: 10f64.powf((min * 0.7).log10().floor()), max: 10f64.powf(max.log10().ceil()), logarithmic }
        } else {
            Axis { min: 0.0, max: max * 1.1, logarithmic }
        }
    }

    fn share(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = (self.max / self.min).log10().round() as i32;
            return (0..=decades).map(|decade| self.min * 10f64.powi(decade)).collect();
        }
        let decade = 10f64.powf(self.max.log10().floor());
        let steps = [0.1, 0.2, 0.5, 1.0].map(|part| part * decade);
        let step = steps.into_iter().find(|step| self.max / step <= 6.0).unwrap_or(decade);
        (0..).map(|index| step * f64::from(index)).take_while(|tick| *tick <= self.max).collect()
    }
}

/// 1,500,000 as 1.5M: axis labels must be short.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{scaled:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn rectangle(out: &mut String, x: f64, y: f64, width: f64, height: f64, color: &str) {
    writeln!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>")
        .expect("a String takes all");
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: u32, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{content}</text>")
        .expect("a String takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(logarithmic: bool) -> Chart {
        let groups = vec![("a".into(), vec![1.0, 1000.0]), ("b\nc".into(), vec![0.0, 31.0])];
        Chart {
            title: "speed <now>".into(),
            unit: "ops/s".into(),
            series: vec!["one".into(), "two".into()],
            panels: vec![Panel { title: "first".into(), groups }],
            logarithmic,
        }
    }

    #[test]
    fn there_is_one_bar_for_each_value_above_zero_and_text_is_escaped() {
        for logarithmic in [false, true] {
            let svg = chart(logarithmic).svg();
            let bars = svg.matches(COLORS[0]).count() + svg.matches(COLORS[1]).count();
            assert_eq!(bars, 3 + 2, "three values, two in the legend");
            assert!(svg.contains("speed &lt;now>") && !svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn axes_hold_their_values() {
        let values = [1.0, 31.0, 1000.0];
        for logarithmic in [false, true] {
            let axis = Axis::over(values.iter(), logarithmic);
            assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.share(*value)) && axis.share(*value) > 0.0));
            assert!(axis.ticks().len() >= 3, "{:?}", axis.ticks());
        }
        assert_eq!(short(1_500_000.0), "1.5M");
        assert_eq!(short(0.05), "0.05");
    }
}
