//! Bars on a logarithmic scale, as SVG: each contender's first figure as a ratio to the baseline, and beside it to bandog.

use std::fmt::Write;

/// One bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: &'static str,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The same as a ratio to bandog.
    pub(crate) of_ours: Option<f64>,
    pub(crate) colour: &'static str,
}

const LABELS: f64 = 250.0;
const WIDTH: f64 = 420.0;
const LINE: f64 = 24.0;
const TOP: f64 = 56.0;

/// A plot with a scale that covers all bars, and a line at 1.
pub(crate) fn bars(title: &str, note: &str, bars: &[Bar]) -> String {
    let values = || bars.iter().flat_map(|bar| [bar.low, bar.high, 1.0]).filter(|value| *value > 0.0);
    let floor = values().fold(f64::INFINITY, f64::min).log10().floor();
    let ceiling = values().fold(0.0, f64::max).log10().ceil().max(floor + 1.0);
    let at = |value: f64| LABELS + (value.max(1e-12).log10() - floor).max(0.0) / (ceiling - floor) * WIDTH;
    let height = TOP + LINE * bars.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"15\">{}</text>\n<text x=\"10\" y=\"38\" fill=\"#555\">{}</text>\n",
        escaped(title),
        escaped(note)
    );
    for power in floor as i32..=ceiling as i32 {
        let (x, bottom) = (at(10f64.powi(power)), height - 24.0);
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"{}\"/>\n<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}×</text>\n",
            TOP - 8.0,
            if power == 0 { "#333" } else { "#ddd" },
            height - 8.0,
            10f64.powi(power)
        );
    }
    for (number, bar) in bars.iter().enumerate() {
        let y = TOP + LINE * number as f64;
        let (from, to) = (at(1.0).min(at(bar.value)), at(1.0).max(at(bar.value)));
        let middle = y + 8.0;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{from:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"16\" fill=\"{}\"/>\n\
             <line x1=\"{:.1}\" y1=\"{middle}\" x2=\"{:.1}\" y2=\"{middle}\" stroke=\"#000\"/>\n\
             <text x=\"{}\" y=\"{}\">{}×</text>\n<text x=\"{}\" y=\"{}\" fill=\"#2f6fb5\">{}</text>\n",
            LABELS - 8.0,
            y + 12.0,
            escaped(bar.label),
            (to - from).max(1.5),
            bar.colour,
            at(bar.low),
            at(bar.high),
            LABELS + WIDTH + 12.0,
            y + 12.0,
            shown(bar.value),
            LABELS + WIDTH + 75.0,
            y + 12.0,
            bar.of_ours.map_or_else(String::new, |ratio| format!("{}× bandog", shown(ratio))),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn shown(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
