//! Every option of every subcommand has a case here; the walk over clap's own list fails for one that has none.
//!
//! A case is played on a stage, which remembers the command lines: each must have used every spelling of its option, the long
//! one, the short one and the environment variable. What the option does, the case asserts.

use std::collections::BTreeSet;

use bandog_cli::args::Cli;
use clap::CommandFactory;

use crate::stage::Stage;
use crate::{bench, breaking, command, doctor, idle, lock, look, lost, output, pages, store, tickets, top, watch};

/// One test per row, `subcommand option: what it does = the case`, and the keys of all rows.
macro_rules! options {
    ($($sub:tt $option:ident: $name:ident = $case:path;)*) => {
        const KEYS: &[(&str, &str)] = &[$((stringify!($sub), stringify!($option))),*];

        $(#[test]
        fn $name() {
            play(stringify!($sub), stringify!($option), $case);
        })*
    };
}

options! {
    bandog help: bandog_help_shows_commands_and_codes = pages::help;
    bandog version: bandog_version_is_that_of_the_package = pages::version;
    run name: run_different_names_are_different_locks = lock::name;
    run nonblock: run_nonblock_makes_busy_an_answer = lock::nonblock;
    run wait: run_wait_is_a_limit_or_long_enough = lock::wait;
    run shared: run_shared_lets_sharers_in_together = lock::shared;
    run permits: run_permits_are_counted_across_processes = lock::permits;
    run of: run_of_is_the_size_of_the_semaphore = lock::of;
    run lease: run_lease_is_what_others_see_of_it = lock::lease;
    run fair: run_fair_waiters_come_in_their_order = lock::fair;
    run conflict_exit_code: run_conflict_exit_code_is_the_code_for_busy = lock::conflict_exit_code;
    run on_busy: run_on_busy_skip_is_success_without_a_word = lock::on_busy;
    run label: run_label_is_what_others_read = lock::label;
    acquire name: acquire_different_names_are_different_locks = lock::name;
    acquire nonblock: acquire_nonblock_makes_busy_an_answer = lock::nonblock;
    acquire wait: acquire_wait_is_a_limit_or_long_enough = lock::wait;
    acquire shared: acquire_shared_lets_sharers_in_together = lock::shared;
    acquire permits: acquire_permits_are_counted_across_processes = lock::permits;
    acquire of: acquire_of_is_the_size_of_the_semaphore = lock::of;
    acquire lease: acquire_lease_is_what_others_see_of_it = lock::lease;
    acquire fair: acquire_fair_waiters_come_in_their_order = lock::fair;
    acquire conflict_exit_code: acquire_conflict_exit_code_is_the_code_for_busy = lock::conflict_exit_code;
    acquire label: acquire_label_is_what_others_read = lock::label;
    run command: run_command_gets_its_words_as_they_are = command::words;
    run shell: run_text_is_run_by_a_shell = command::shell;
    run max_hold: run_max_hold_ends_the_command = command::max_hold;
    run at_least: run_at_least_holds_on = command::at_least;
    run on_lost: run_on_lost_decides_about_the_command = command::on_lost;
    run grace: run_grace_is_the_time_between_term_and_kill = command::grace;
    run wait_for_store: run_wait_for_store_waits_for_a_store_that_starts = idle::wait_for_store;
    acquire wait_for_store: acquire_wait_for_store_waits_for_a_store_that_starts = idle::wait_for_store;
    run on_lost_exec: run_on_lost_exec_is_run_once_when_the_lease_is_lost = lost::on_lost_exec;
    wait name: wait_name_is_the_lock = idle::name;
    wait nonblock: wait_nonblock_makes_busy_an_answer = idle::nonblock;
    wait wait: wait_wait_is_a_limit_or_long_enough = idle::wait;
    wait conflict_exit_code: wait_conflict_exit_code_is_the_code_for_busy = idle::conflict_exit_code;
    wait wait_for_store: wait_wait_for_store_waits_for_a_store_that_starts = idle::wait_for_store;
    wait store: wait_store_says_where_the_locks_are = store::store;
    wait config: wait_config_names_the_file = store::config;
    wait verbose: wait_verbose_says_more = output::verbose;
    wait quiet: wait_quiet_says_nothing = output::quiet;
    wait json: wait_json_is_one_object_per_line = output::json;
    wait help: wait_help_shows_its_options = pages::help;
    acquire keep: acquire_keep_renews_while_a_process_lives = tickets::keep;
    acquire export: acquire_export_is_for_the_shell = tickets::export;
    run store: run_store_says_where_the_locks_are = store::store;
    run config: run_config_names_the_file = store::config;
    run verbose: run_verbose_says_more = output::verbose;
    run quiet: run_quiet_says_nothing = output::quiet;
    run json: run_json_is_one_object_per_line = output::json;
    run help: run_help_shows_its_options = pages::help;
    acquire store: acquire_store_says_where_the_locks_are = store::store;
    acquire config: acquire_config_names_the_file = store::config;
    acquire verbose: acquire_verbose_says_more = output::verbose;
    acquire quiet: acquire_quiet_says_nothing = output::quiet;
    acquire json: acquire_json_is_one_object_per_line = output::json;
    acquire help: acquire_help_shows_its_options = pages::help;
    renew store: renew_store_says_where_the_locks_are = store::store;
    renew config: renew_config_names_the_file = store::config;
    renew verbose: renew_verbose_says_more = output::verbose;
    renew quiet: renew_quiet_says_nothing = output::quiet;
    renew json: renew_json_is_one_object_per_line = output::json;
    renew help: renew_help_shows_its_options = pages::help;
    release store: release_store_says_where_the_locks_are = store::store;
    release config: release_config_names_the_file = store::config;
    release verbose: release_verbose_says_more = output::verbose;
    release quiet: release_quiet_says_nothing = output::quiet;
    release json: release_json_is_one_object_per_line = output::json;
    release help: release_help_shows_its_options = pages::help;
    ls pattern: ls_pattern_chooses_names = look::pattern;
    ls host: ls_host_chooses_holders = look::host;
    ls label: ls_label_chooses_holders = look::label;
    ls contended: ls_contended_are_those_with_waiters = look::contended;
    ls over: ls_over_are_those_held_for_long = look::over;
    ls sort: ls_sort_decides_the_order = look::sort;
    ls reverse: ls_reverse_turns_the_order_round = look::reverse;
    ls limit: ls_limit_stops_and_says_how_to_go_on = look::limit;
    ls after: ls_after_goes_on = look::after;
    ls store: ls_store_says_where_the_locks_are = look::store;
    ls config: ls_config_names_the_file = look::config;
    ls json: ls_json_is_one_object_per_lock = look::json;
    ls help: ls_help_shows_its_options = pages::help;
    show name: show_name_is_the_lock = look::name;
    show store: show_store_says_where_the_locks_are = look::store;
    show config: show_config_names_the_file = look::config;
    show json: show_json_is_one_object = look::json;
    show help: show_help_shows_its_options = pages::help;
    break name: break_name_is_the_lock = breaking::name;
    break reason: break_reason_is_told_to_the_holder = breaking::reason;
    break id: break_id_chooses_the_holder = breaking::id;
    break now: break_now_ends_the_hold_at_once = breaking::now;
    break yes: break_yes_is_needed_where_nobody_can_be_asked = breaking::yes;
    break no_wait: break_no_wait_does_not_follow = breaking::no_wait;
    break store: break_store_says_where_the_locks_are = breaking::store;
    break config: break_config_names_the_file = breaking::config;
    break json: break_json_is_one_object = breaking::json;
    break help: break_help_shows_its_options = pages::help;
    doctor strict: doctor_strict_lets_risky_count_as_wrong = doctor::strict;
    doctor store: doctor_store_says_what_is_examined = doctor::store;
    doctor config: doctor_config_names_the_file = doctor::config;
    doctor json: doctor_json_is_one_object_per_remark = doctor::json;
    doctor help: doctor_help_shows_its_options = pages::help;
    watch pattern: watch_pattern_chooses_names = watch::pattern;
    watch every: watch_every_is_the_period_of_looks = watch::every;
    watch limit: watch_limit_bounds_what_is_looked_at = watch::limit;
    watch for: watch_for_ends_it = watch::lasting;
    watch store: watch_store_says_where_the_locks_are = watch::store;
    watch config: watch_config_names_the_file = watch::config;
    watch json: watch_json_is_one_object_per_change = watch::json;
    watch help: watch_help_shows_its_options = pages::help;
    bench only: bench_only_runs_what_was_named = bench::only;
    bench length: bench_for_is_the_time_of_each_scenario = bench::length;
    bench tasks: bench_tasks_share_the_contended_lock = bench::tasks;
    bench name: bench_name_begins_the_names_of_its_locks = bench::name;
    bench yes: bench_yes_is_the_answer_to_the_question = bench::yes;
    bench store: bench_store_says_where_the_locks_are = bench::store;
    bench config: bench_config_names_the_file = bench::config;
    bench json: bench_json_is_one_object_per_scenario = bench::json;
    bench help: bench_help_shows_its_options = pages::help;
    top pattern: top_pattern_chooses_names = watch::pattern;
    top every: top_every_is_the_period_of_looks = watch::every;
    top limit: top_limit_bounds_what_is_looked_at = watch::limit;
    top for: top_for_ends_it = watch::lasting;
    top alert_hold: top_alert_hold_tells_of_long_holds = top::alert_hold;
    top alert_waiters: top_alert_waiters_tells_of_long_queues = top::alert_waiters;
    top store: top_store_says_where_the_locks_are = watch::store;
    top config: top_config_names_the_file = watch::config;
    top json: top_json_is_one_snapshot_per_period = top::json;
    top help: top_help_shows_its_options = pages::help;
    explain kind: explain_prints_what_the_page_says = look::kind;
    explain json: explain_json_is_one_object_per_kind = look::explain_json;
    explain help: explain_help_shows_its_options = pages::help;
    completions shell: completions_are_made_for_every_shell = pages::completions;
    completions help: completions_help_shows_its_options = pages::help;
    man command: man_pages_are_made_for_every_subcommand = pages::man;
    man help: man_help_shows_its_options = pages::help;
}

fn bandog() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn subcommand(name: &str) -> clap::Command {
    let root = bandog();
    if name == "bandog" { root } else { root.find_subcommand(name).unwrap().clone() }
}

fn play(sub: &str, option: &str, case: fn(&Stage, &str)) {
    let stage = Stage::new();
    case(&stage, sub);
    let command = subcommand(sub);
    let arg = command.get_arguments().find(|arg| arg.get_id() == option).unwrap();
    let mut spellings: Vec<String> = arg.get_long().map(|long| format!("--{long}")).into_iter().collect();
    spellings.extend(arg.get_short().map(|short| format!("-{short}")));
    spellings.extend(arg.get_env().map(|variable| format!("{}=", variable.display())));
    let played = stage.played.borrow();
    let of_this = |line: &&Vec<String>| sub == "bandog" || line.iter().any(|word| word == sub);
    for spelling in spellings {
        let used = |word: &String| *word == spelling || spelling.ends_with('=') && word.starts_with(&spelling);
        assert!(played.iter().filter(of_this).flatten().any(used), "{sub}: the case never used {spelling}");
    }
    assert!(played.iter().any(|line| of_this(&line)), "{sub}: the case never ran it");
}

#[test]
fn every_option_that_clap_knows_has_a_case() {
    let mut known = BTreeSet::new();
    let root = bandog();
    for command in std::iter::once(&root).chain(root.get_subcommands()) {
        for arg in command.get_arguments() {
            known.insert((command.get_name().to_owned(), arg.get_id().to_string()));
        }
    }
    let covered: BTreeSet<(String, String)> =
        KEYS.iter().map(|(sub, option)| ((*sub).to_owned(), (*option).to_owned())).collect();
    assert_eq!(covered.len(), KEYS.len(), "an option has two rows");
    assert_eq!(
        known.difference(&covered).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new(),
        "options without a case"
    );
    assert_eq!(
        covered.difference(&known).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new(),
        "cases without an option"
    );
}

#[test]
fn every_subcommand_is_walked_over() {
    let names: Vec<String> = bandog().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    assert_eq!(
        names,
        [
            "run",
            "acquire",
            "renew",
            "release",
            "wait",
            "ls",
            "show",
            "watch",
            "top",
            "break",
            "doctor",
            "bench",
            "explain",
            "completions",
            "man",
            "help"
        ]
    );
}
