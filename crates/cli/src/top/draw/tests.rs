//! The screen, drawn on a terminal of the tests.

use std::time::Duration;

use bandog::op::{HolderView, RecordView};
use bandog::{LockName, Moment};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::super::keys::action;
use super::super::model::Model;
use super::super::state::{Details, Mode, State};
use super::super::update::Wish;
use super::*;
use crate::args::Alerts;
use crate::revoke::question::at_once;
use crate::screen::Screen;
use crate::watch::sample::{SECOND, holder, id, record, waiter};
use crate::watch::{Change, Event, Party, Sight};

fn moment(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

fn name(text: &str) -> LockName {
    LockName::new(text).unwrap()
}

/// At second 1,000 of the wall clock: `job` is held and waited for, `old` is held for long, `free` is only waited for.
fn state(colour: bool) -> State {
    let limits = Alerts { hold: Duration::from_secs(300), waiters: 1 };
    let model = Model::new("redis://db1:6379/0".into(), "*", limits, moment(0));
    let mut state = State::new(Screen::of(Some(80), colour), model, moment(10));
    let sight = |record: RecordView| Sight::new(record, moment(10), None);
    let sights = [
        (name("free"), sight(record(&[], &[waiter(5, 999)]))),
        (name("job"), sight(record(&[holder(1, 990, 30)], &[waiter(2, 995), waiter(3, 996)]))),
        (name("old"), sight(record(&[holder(4, 400, 30)], &[]))),
        (name("quick"), sight(record(&[holder(6, 999, 30)], &[]))),
    ];
    let by = Party { id: id(9), who: None };
    let released = Change::Released { by, held: Some(Duration::from_secs(5)), asked: None };
    let events = vec![Event { at: 995 * SECOND, lock: name("job"), change: released }];
    state.model.looks = "a look every 1s".into();
    state.model.see(sights.iter().map(|(name, sight)| (name, sight)), events, (moment(10), 1_000 * SECOND));
    state.settle();
    state
}

fn drawn(state: &State, columns: u16, lines: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..lines).map(line).collect()
}

fn press(state: &mut State, keys: &str) -> Option<Wish> {
    let mut wish = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            sign => KeyCode::Char(sign),
        };
        wish = action(&state.mode, KeyEvent::new(code, KeyModifiers::NONE)).and_then(|action| state.update(action));
    }
    wish
}

#[test]
fn a_usual_screen_shows_everything() {
    let screen = drawn(&state(false), 80, 24);
    assert_eq!(
        screen[..7],
        [
            "redis://db1:6379/0                          4 locks  3 holders  3 waiters  0.1/s",
            "*  by contention  a look every 1s",
            "NAME   HOLDER      HOST  PID  LABEL  HELD  LEFT  WAITERS  HOLDS",
            "job    0000000001  web1    1          10s   30s        2     ▅█",
            "free   -           -       -  -         -     -        1",
            "old    0000000004  web1    4          10m   30s        0      █",
            "quick  0000000006  web1    6         1.0s   30s        0      █",
        ]
    );
    assert_eq!(screen[14..16], ["▲ job: 2 waiters", "▲ old: held for 10m by web1/4"]);
    assert!(screen[16].starts_with("EVENTS ───") && screen[16].ends_with('─'), "{screen:?}");
    assert_eq!(screen[17], "00:16:35  job  released  0000000009, held 5.0s");
    assert_eq!(screen[23], "? help  q quit  enter show  b break  / filter  s sort  r reverse  space pause");
}

#[test]
fn a_small_screen_shows_what_matters() {
    let screen = drawn(&state(false), 40, 10);
    assert_eq!(
        screen[..5],
        [
            "r…  4 locks  3 holders  3 waiters  0.1/s",
            "NAME   HOST  HELD  LEFT  WAITERS  HOLDS",
            "job    web1   10s   30s        2     ▅█",
            "free   -        -     -        1",
            "old    web1   10m   30s        0      █",
        ]
    );
    assert_eq!(screen[8], "▲ job: 2 waiters (and 1 more)");
    assert_eq!(screen[9], "? help  q quit  enter show  b break  / f");
    assert_eq!(drawn(&state(false), 39, 10)[0], "too small: 40 x 10 needed");
    assert_eq!(drawn(&state(false), 80, 9)[0], "too small: 40 x 10 needed");
    for (columns, lines) in [(40, 14), (60, 20), (200, 60)] {
        assert_eq!(drawn(&state(false), columns, lines).len(), usize::from(lines));
    }
}

#[test]
fn colours_are_only_there_where_they_are_wanted() {
    let colours = |colour: bool| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &state(colour))).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let chosen = buffer[(0, 3)].style().add_modifier.contains(Modifier::REVERSED);
        (buffer.content.iter().any(|cell| cell.fg != Color::Reset), chosen)
    };
    assert_eq!((colours(true), colours(false)), ((true, true), (false, true)));
}

#[test]
fn rows_are_sorted_by_what_the_user_wants() {
    let mut state = state(false);
    let order = |state: &State| state.model.rows.iter().map(|row| row.entry.name.to_string()).collect::<Vec<_>>();
    assert_eq!(order(&state), ["job", "free", "old", "quick"]);
    press(&mut state, "s");
    assert_eq!(order(&state), ["old", "job", "quick", "free"]);
    assert_eq!(state.chosen.as_ref().unwrap().as_str(), "job", "the same lock as before");
    press(&mut state, "sr");
    assert_eq!(order(&state)[0], "free", "nobody's lease, the other way round");
    press(&mut state, "sr");
    assert_eq!(order(&state), ["free", "job", "old", "quick"]);
    press(&mut state, "G");
    assert_eq!(state.place(), 3);
    press(&mut state, "gj");
    assert_eq!(state.row().unwrap().entry.name.as_str(), "job");
}

#[test]
fn a_chosen_lock_that_is_gone_leaves_its_place_to_the_next() {
    let mut state = state(false);
    press(&mut state, "jj");
    assert_eq!(state.row().unwrap().entry.name.as_str(), "old");
    state.model.rows.retain(|row| row.entry.name.as_str() != "old");
    state.settle();
    assert_eq!(state.row().unwrap().entry.name.as_str(), "quick", "what stands there now");
}

#[test]
fn a_filter_is_typed() {
    let mut state = state(false);
    press(&mut state, "/");
    assert_eq!(drawn(&state, 80, 24)[23], "filter (* ? [a-z]): ▏", "no star that would stand before what is typed");
    press(&mut state, "order");
    assert_eq!(drawn(&state, 80, 24)[23], "filter (* ? [a-z]): order▏");
    assert!(matches!(press(&mut state, "\n"), Some(Wish::Filter(pattern)) if pattern == "*order*"));
    press(&mut state, "/[");
    assert!(press(&mut state, "\n").is_none() && matches!(state.mode, Mode::Filter(_)), "it cannot be");
    let why = r#"the pattern "[" opens a [ and does not close it; write \[ for the character itself"#;
    assert_eq!(drawn(&state, 100, 24)[23], why);
    assert_eq!(drawn(&state, 60, 24)[23], format!("{}…", &why[..59]), "what is cut is seen to be cut");
    assert!(matches!(press(&mut state, "\x08\n"), Some(Wish::Filter(pattern)) if pattern == "*"));
    press(&mut state, "/q");
    assert!(press(&mut state, "\x1b").is_none() && matches!(state.mode, Mode::List), "q is a letter there");
    state.model.pattern = "*order*".into();
    press(&mut state, "/s");
    assert_eq!(drawn(&state, 80, 24)[23], "filter (* ? [a-z]): orders▏", "what was typed before");
    let erase = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    assert!(action(&state.mode, erase).and_then(|action| state.update(action)).is_none());
    assert_eq!(drawn(&state, 80, 24)[23], "filter (* ? [a-z]): ▏");
    assert!(action(&Mode::List, erase).is_none());
}

#[test]
fn message_of_a_key_press_disappears_after_eight_seconds() {
    let mut state = state(false);
    state.say(Ink::Good, "job: ended at once (1)");
    for (seconds, shown) in [(10, true), (12, true), (17, true), (18, false)] {
        state.fade(moment(seconds));
        assert_eq!(drawn(&state, 80, 24)[23].starts_with("job: ended at once"), shown, "{seconds}");
    }
}

#[test]
fn breaking_asks_twice_and_shows_what_it_breaks() {
    let mut state = state(false);
    assert!(press(&mut state, "b").is_none());
    assert!(press(&mut state, "  \n").is_none() && matches!(state.mode, Mode::Reason(_)), "a reason is needed");
    assert!(drawn(&state, 80, 24).join("\n").contains("a reason is needed"));
    press(&mut state, "deploy\n");
    let screen = drawn(&state, 80, 24).join("\n");
    for words in ["break job", "0000000001  web1/1  exclusive, held 10s", "deploy", "in 30s at the latest; 2 waiters"] {
        assert!(screen.contains(words), "no {words:?} in\n{screen}");
    }
    assert!(screen.contains("y break it  n at once  Esc leave it") && !screen.contains("AT ONCE"), "{screen}");
    assert!(press(&mut state, "\n").is_none() && matches!(state.mode, Mode::Confirm(_)), "Enter does not break");
    assert!(press(&mut state, "n").is_none());
    for (columns, lines) in [(80, 24), (40, 10)] {
        let screen = drawn(&state, columns, lines).join("\n");
        assert!(screen.contains("AT ONCE: the lock passes on at once"), "{screen}");
        assert!(screen.contains("y END IT AT ONCE"), "{screen}");
    }
    let screen = drawn(&state, 80, 24).join(" ").replace('│', " ");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let Mode::Confirm(breaking) = &state.mode else { panic!("it is not asked") };
    assert!(breaking.next.is_some() && words.contains(&at_once(breaking.next.as_deref())), "as break says it: {words}");
    let Some(Wish::Break(breaking)) = press(&mut state, "y") else { panic!("nothing is broken") };
    assert_eq!((breaking.lock.as_str(), breaking.reason.trim(), breaking.now), ("job", "deploy", true));
    assert_eq!(breaking.holders.iter().map(|holder| holder.id).collect::<Vec<_>>(), [id(1)]);
    press(&mut state, "bx\n");
    assert!(press(&mut state, "\x1b").is_none() && matches!(state.mode, Mode::List));
    press(&mut state, "jb");
    assert!(matches!(state.mode, Mode::List) && drawn(&state, 80, 24)[23].contains("nothing to break"));
}

#[test]
fn a_lock_is_shown_over_the_list() {
    let mut state = state(false);
    assert!(matches!(press(&mut state, "\n"), Some(Wish::Show(lock)) if lock.as_str() == "job"));
    let details = Details { lock: name("job"), info: None, above: 0 };
    state.mode = Mode::Details(details);
    assert!(drawn(&state, 80, 24).join("\n").contains("the store remembers nothing of it"));
    press(&mut state, "?");
    assert!(matches!(state.mode, Mode::Details(_)));
    press(&mut state, "q?");
    let help = drawn(&state, 80, 24).join("\n");
    assert!(help.contains("┌ keys ─") && help.contains("how long the last holds lasted"), "{help}");
    assert!(press(&mut state, "q").is_none() && matches!(state.mode, Mode::List));
    assert!(matches!(press(&mut state, "q"), Some(Wish::Quit)));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut state, "/");
    assert!(action(&state.mode, control_c).and_then(|action| state.update(action)).is_some());
}

#[test]
fn what_others_wrote_is_shown_and_not_obeyed() {
    let mut state = state(false);
    let holder = HolderView { revoked: Some("\x1b[2Jgo".into()), ..holder(1, 990, 30) };
    let sight = Sight::new(record(&[holder], &[]), moment(10), None);
    let sights = [(name("a\u{202e}b"), sight)];
    state.model.see(sights.iter().map(|(name, sight)| (name, sight)), Vec::new(), (moment(10), 1_000 * SECOND));
    state.settle();
    let screen = drawn(&state, 80, 24).join("\n");
    assert!(screen.contains("a\\u{202e}b") && screen.contains("30s left: \\u{1b}[2Jgo"), "{screen}");
}
