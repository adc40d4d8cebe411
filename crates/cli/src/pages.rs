//! The manual page and the completions, made from the same description as the help.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{self, Exit};
use crate::explain;
use crate::failure::Failure;

pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    // Both take more than these, so they are not in the description itself.
    let values = |values: Vec<String>| move |arg: Arg| arg.value_parser(PossibleValuesParser::new(values));
    let kinds = explain::kinds().map(str::to_owned).collect();
    let mut command = Cli::command()
        .mut_subcommand("explain", |sub| sub.mut_arg("kind", values(kinds)))
        .mut_subcommand("man", |sub| sub.mut_arg("command", values(subcommands())));
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "bandog", &mut text);
    let text = String::from_utf8_lossy(&text);
    print(with_names(shell, &text).as_bytes())
}

/// Prints the names of locks. One with a sign that JSON escapes is for people to type.
const NAMES: &str = r#"bandog ls --json 2> /dev/null | sed -n 's/^{"lock":"\([^"\\]*\)".*/\1/p'"#;
/// The subcommands that are about a lock.
const NAMED: [&str; 8] = ["run", "acquire", "wait", "show", "break", "ls", "watch", "top"];

/// What no description can know: the locks that there are.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => script.replace("complete -F _bandog ", "complete -F _bandog_named ") + &bash(),
        Shell::Zsh => {
            let named =
                script.replace(":name -- The lock'\\''s name:_default'", ":name -- The lock'\\''s name:_bandog_names'");
            let names = format!(
                "_bandog_names() {{\n    local -a names\n    names=(${{(f)\"$({NAMES})\"}})\n    compadd -a names\n}}\n"
            );
            named.replacen("#compdef bandog\n", &format!("#compdef bandog\n\n{names}"), 1)
        }
        Shell::Fish => script.to_owned() + &fish(),
        _ => script.to_owned(),
    }
}

fn fish() -> String {
    let line = |sub: &str, words: &str| {
        format!("complete -c bandog -n \"__fish_bandog_using_subcommand {sub}\" -f -a \"{words}\"\n")
    };
    let kinds: Vec<&str> = explain::kinds().collect();
    let fixed = line("explain", &kinds.join(" ")) + &line("man", &subcommands().join(" "));
    let named = NAMED.map(|sub| line(sub, "(__fish_bandog_names)")).concat();
    format!("\nfunction __fish_bandog_names\n    {NAMES}\nend\n{named}{fixed}")
}

fn subcommands() -> Vec<String> {
    Cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect()
}

fn bash() -> String {
    format!(
        r#"
_bandog_named() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    _bandog "$1" "$cur" "$prev"
    if [[ ${{cur}} == -* || ${{prev}} == -* || ${{COMP_CWORD}} -lt 2 || " {} " != *" ${{COMP_WORDS[1]}} "* ]]; then
        return 0
    fi
    local name
    while IFS= read -r name; do
        [[ ${{name}} == "${{cur}}"* ]] && COMPREPLY+=("${{name}}")
    done < <({NAMES})
    return 0
}}
"#,
        NAMED.join(" ")
    )
}

pub(crate) fn man(of: Option<&str>) -> Result<Exit, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    if let Some(name) = of {
        let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let unknown = || format!("there is no subcommand {name:?}; there are {}", known.join(", "));
        let found = command.find_subcommand(name).ok_or_else(|| Failure::usage(unknown()))?;
        command = found.clone().name(format!("bandog-{name}"));
    }
    let mut text = Vec::new();
    // The codes are a section of their own instead of the end of the help.
    let page = clap_mangen::Man::new(command.after_help(None::<&str>).after_long_help(None::<&str>));
    let rendered = page.render(&mut text).and_then(|()| exit_status(&mut text, of));
    rendered.map_err(|error| Failure::new("output", Exit::Unavailable, error.to_string()))?;
    print(&text)
}

fn exit_status(page: &mut Vec<u8>, of: Option<&str>) -> std::io::Result<()> {
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    exit::rows(of).try_for_each(|row| writeln!(page, ".TP\n{}\n{}", row.code, row.meaning))
}

fn print(text: &[u8]) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text).and_then(|()| out.flush());
    written
        .map(|()| Exit::Fine)
        .map_err(|error| Failure::new("output", Exit::Unavailable, format!("not printed: {error}")))
}
