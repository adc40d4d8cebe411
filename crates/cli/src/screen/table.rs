//! Rows under headers, aligned. On a narrow terminal ids are shortened first, the least important columns go next, and what a row is
//! about is cut last.
//!
//! The widths are those of the rows that the table was made for; rows that come later, in a listing without end, use them too.

use unicode_width::UnicodeWidthStr;

use super::{Ink, Screen};

/// Spaces between columns.
const GAP: usize = 2;
/// A text column is not cut below this.
const LEAST: usize = 8;
/// Nor an id, of which so much still tells it from its neighbours.
const LEAST_ID: usize = 6;
/// What a row is about is not cut below this as long as there are columns to leave out.
const KEPT: usize = 32;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// Numbers stand to the right.
    pub(crate) right: bool,
    /// Whether it may be cut: an id that is cut names nobody.
    pub(crate) whole: bool,
    /// Those with the highest number go first when there is no room. 0 always stays.
    pub(crate) spare: u8,
    /// What it is not cut below.
    least: usize,
    /// The same as long as there are columns to leave out.
    kept: usize,
    /// Whether it is left out where all its cells are empty.
    seldom: bool,
}

impl Column {
    pub(crate) const fn left(head: &'static str, spare: u8) -> Self {
        Self { head, right: false, whole: false, spare, least: LEAST, kept: LEAST, seldom: false }
    }

    /// What a row is about.
    pub(crate) const fn name(head: &'static str) -> Self {
        Self { kept: KEPT, ..Self::left(head, 0) }
    }

    /// Ids: the first signs are enough to tell them apart.
    pub(crate) const fn id(head: &'static str, spare: u8) -> Self {
        Self { least: LEAST_ID, kept: LEAST_ID, ..Self::left(head, spare) }
    }

    /// Mostly there is nothing to say.
    pub(crate) const fn seldom(head: &'static str, spare: u8) -> Self {
        Self { whole: true, seldom: true, ..Self::left(head, spare) }
    }

    pub(crate) const fn whole(head: &'static str, spare: u8) -> Self {
        Self { whole: true, ..Self::left(head, spare) }
    }

    pub(crate) const fn right(head: &'static str, spare: u8) -> Self {
        Self { right: true, ..Self::whole(head, spare) }
    }
}

/// One field of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    ink: Ink,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ink: Ink::Plain }
    }

    pub(crate) fn ink(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }
}

/// A layout for rows.
#[derive(Debug)]
pub(crate) struct Table {
    screen: Screen,
    columns: &'static [Column],
    /// Width of each column; `None` for one that has no room.
    widths: Vec<Option<usize>>,
}

impl Table {
    /// A table with room for these rows.
    pub(crate) fn new(screen: Screen, columns: &'static [Column], rows: &[Vec<Cell>]) -> Self {
        let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max();
        let width = |(at, column): (usize, &Column)| {
            let widest = widest(at).unwrap_or(0);
            (widest > 0 || !column.seldom).then_some(widest.max(column.head.width()))
        };
        let widths = columns.iter().enumerate().map(width).collect();
        let mut table = Self { screen, columns, widths };
        if let Some(room) = screen.columns() {
            table.drop_columns(room);
            table.narrow(room);
        }
        table
    }

    fn total(&self) -> usize {
        let shown: Vec<usize> = self.widths.iter().copied().flatten().collect();
        shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
    }

    /// Text may be cut to its least width, so a column goes only if that is not enough.
    fn drop_columns(&mut self, room: usize) {
        let least = |table: &Self| {
            let cut: usize = table.text().map(|at| table.widths[at].unwrap_or(0).saturating_sub(table.kept(at))).sum();
            table.total() - cut
        };
        while least(self) > room {
            let shown = (0..self.columns.len()).filter(|at| self.widths[*at].is_some() && self.columns[*at].spare > 0);
            let Some(spare) = shown.max_by_key(|at| self.columns[*at].spare) else { return };
            self.widths[spare] = None;
        }
    }

    /// Cuts ids, and then the widest text column, sign by sign: as long as there is another, not what the row is about.
    fn narrow(&mut self, room: usize) {
        while self.total() > room {
            let widest = |least: &dyn Fn(usize) -> usize| {
                let can = self.text().filter(|at| self.widths[*at].is_some_and(|width| width > least(*at)));
                can.max_by_key(|at| self.widths[*at])
            };
            let is_id = |at: &usize| self.columns[*at].least == LEAST_ID && self.widths[*at] > Some(self.least(*at));
            let id = self.text().find(is_id);
            let text = || widest(&|at| self.kept(at)).or_else(|| widest(&|at| self.least(at)));
            let Some(at) = id.or_else(text) else { return };
            self.widths[at] = self.widths[at].map(|width| width - 1);
        }
    }

    fn text(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|at| !self.columns[*at].whole)
    }

    fn least(&self, at: usize) -> usize {
        self.columns[at].least.max(self.columns[at].head.width())
    }

    /// The same while there are columns to leave out.
    fn kept(&self, at: usize) -> usize {
        self.widths[at].unwrap_or(0).min(self.columns[at].kept).max(self.least(at))
    }

    pub(crate) fn head(&self) -> String {
        self.painted(self.head_spans())
    }

    pub(crate) fn row(&self, cells: &[Cell]) -> String {
        self.painted(self.spans(cells))
    }

    fn painted(&self, spans: Vec<(Ink, String)>) -> String {
        spans.iter().map(|(ink, text)| self.screen.paint(*ink, text)).collect()
    }

    pub(crate) fn head_spans(&self) -> Vec<(Ink, String)> {
        let cells: Vec<Cell> = self.columns.iter().map(|column| Cell::new(column.head).ink(Ink::Faint)).collect();
        self.spans(&cells)
    }

    /// A row in pieces, for whoever colours it in another way.
    pub(crate) fn spans(&self, cells: &[Cell]) -> Vec<(Ink, String)> {
        let mut spans = Vec::new();
        let shown = self.widths.iter().zip(self.columns).zip(cells);
        let mut pending = 0;
        for ((width, column), cell) in shown {
            let Some(width) = *width else { continue };
            let text =
                if self.screen.columns().is_some() { self.screen.cut(&cell.text, width) } else { cell.text.clone() };
            let blank = width.saturating_sub(text.width());
            let (before, after) = if column.right { (blank, 0) } else { (0, blank) };
            spans.push((Ink::Plain, " ".repeat(pending + before)));
            spans.push((cell.ink, text));
            pending = after + GAP;
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] =
        &[Column::name("NAME"), Column::id("HOLDER", 2), Column::right("PID", 1), Column::right("WAITERS", 0)];

    fn rows() -> Vec<Vec<Cell>> {
        let row = |words: [&str; 4]| words.map(Cell::new).to_vec();
        vec![row(["nightly-report", "k3x9w0c2fm", "7", "2"]), row(["a", "b", "70123", "10"])]
    }

    fn drawn(columns: Option<usize>) -> Vec<String> {
        let rows = rows();
        let table = Table::new(Screen::of(columns, false), COLUMNS, &rows);
        [table.head()].into_iter().chain(rows.iter().map(|row| table.row(row))).collect()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            drawn(None),
            [
                "NAME            HOLDER        PID  WAITERS",
                "nightly-report  k3x9w0c2fm      7        2",
                "a               b           70123       10"
            ]
        );
        assert_eq!(drawn(Some(100)), drawn(None));
    }

    #[test]
    fn a_narrow_screen_shortens_ids_then_drops_columns_then_cuts_names() {
        assert_eq!(
            drawn(Some(38)),
            [
                "NAME            HOLDER    PID  WAITERS",
                "nightly-report  k3x9w…      7        2",
                "a               b       70123       10"
            ]
        );
        assert_eq!(drawn(Some(30))[0], "NAME              PID  WAITERS");
        let narrow = drawn(Some(24));
        assert_eq!(narrow[..2], ["NAME            WAITERS", "nightly-report        2"]);
        assert!(narrow.iter().all(|line| line.width() <= 24), "{narrow:?}");
        assert_eq!(drawn(Some(20))[1], "nightly-re…        2");
    }

    #[test]
    fn rows_that_come_later_are_whole_off_a_terminal() {
        let table = Table::new(Screen::of(None, false), COLUMNS, &rows());
        let late = ["a-name-that-is-longer", "b", "1", "0"].map(Cell::new);
        assert!(table.row(&late).starts_with("a-name-that-is-longer  b"));
    }
}
