//! Draws what a terminal showed, with its colours, as SVG: `draw COLUMNS ROWS < capture > picture.svg`.
//!
//! For the pictures under `docs/captures`; `make.sh` there calls it. A line of three dashes alone divides two terminals.

use std::fmt::Write as _;
use std::io::Read;
use std::num::NonZero;

const CELL: f64 = 8.43;
const STEP: f64 = 19.0;
const MARGIN: f64 = 16.0;
const PAPER: &str = "#16181d";
const INK: &str = "#d8dee9";
/// Black, red, green, yellow, blue, magenta, cyan, white; then the bright ones.
const COLOURS: [&str; 16] = [
    "#3b4252", "#bf616a", "#a3be8c", "#ebcb8b", "#81a1c1", "#b48ead", "#88c0d0", "#e5e9f0", "#4c566a", "#d08770",
    "#b4d39b", "#f2d9a0", "#9bb8d3", "#c6a5c0", "#a3d3e0", "#ffffff",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut size = std::env::args().skip(1).map(|word| word.parse::<NonZero<u16>>());
    let (Some(columns), Some(rows)) = (size.next().transpose()?, size.next().transpose()?) else {
        return Err("usage: draw COLUMNS ROWS < capture > picture.svg".into());
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    terminal.process(text.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    println!("{}", picture(terminal.screen(), columns.get(), rows.get()));
    Ok(())
}

fn picture(screen: &vt100::Screen, columns: u16, rows: u16) -> String {
    let (wide, high) = (f64::from(columns) * CELL + 2.0 * MARGIN, f64::from(rows) * STEP + 28.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.0}\" height=\"{high:.0}\" viewBox=\"0 0 {wide:.0} {high:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">\n"
    );
    for row in 0..rows {
        let top = 9.0 + f64::from(row) * STEP;
        if screen.contents_between(row, 0, row, columns).trim() == "---" {
            let middle = top + STEP / 2.0;
            let _ =
                writeln!(svg, "<line x1=\"0\" x2=\"{wide:.0}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#3b4252\"/>");
        } else {
            runs(screen, row, columns).iter().for_each(|run| run.draw(top, &mut svg));
        }
    }
    svg + "</g>\n</svg>"
}

/// Cells beside each other that look alike.
struct Run {
    at: u16,
    cells: u16,
    text: String,
    look: Look,
}

#[derive(Clone, PartialEq)]
struct Look {
    ink: String,
    paper: Option<String>,
    bold: bool,
    dim: bool,
}

fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for at in 0..columns {
        let Some(cell) = screen.cell(row, at).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let (look, cells) = (look(cell), if cell.is_wide() { 2 } else { 1 });
        let text = if cell.contents().is_empty() { " " } else { cell.contents() };
        match runs.last_mut() {
            Some(run) if run.look == look => {
                run.text.push_str(text);
                run.cells += cells;
            }
            _ => runs.push(Run { at, cells, text: text.to_owned(), look }),
        }
    }
    runs
}

fn look(cell: &vt100::Cell) -> Look {
    let colour = |colour: vt100::Color| match colour {
        vt100::Color::Default => None,
        vt100::Color::Idx(number) => COLOURS.get(usize::from(number)).map(|colour| (*colour).to_owned()),
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    };
    let (ink, paper) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    let (ink, paper) = match cell.inverse() {
        true => (paper.unwrap_or_else(|| PAPER.to_owned()), Some(ink.unwrap_or_else(|| INK.to_owned()))),
        false => (ink.unwrap_or_else(|| INK.to_owned()), paper),
    };
    Look { ink, paper, bold: cell.bold(), dim: cell.dim() }
}

impl Run {
    fn draw(&self, top: f64, svg: &mut String) {
        let (left, wide) = (MARGIN + f64::from(self.at) * CELL, f64::from(self.cells) * CELL);
        if let Some(paper) = &self.look.paper {
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.2}\" y=\"{top}\" width=\"{wide:.2}\" height=\"{STEP}\" fill=\"{paper}\"/>"
            );
        }
        if self.text.trim().is_empty() {
            return;
        }
        let text = self.text.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let weight = if self.look.bold { " font-weight=\"bold\"" } else { "" };
        let faint = if self.look.dim { " opacity=\"0.6\"" } else { "" };
        let (ink, base) = (&self.look.ink, top + 14.0);
        let _ = writeln!(svg, "<text x=\"{left:.2}\" y=\"{base}\" fill=\"{ink}\"{weight}{faint}>{text}</text>");
    }
}
