//! A Redis of one thread and a virtual clock, for scripts only: Lua 5.1 around the commands they use.
//!
//! The tests of `bandog-redis` run the scripts in it beside the ledger, the schedules of `bandog-proof` in place of the ledger.
//!
//! # Invariants
//! - A script that reads or writes a global other than Redis's own fails, as does any command that the scripts have not needed yet.
//! - Time passes only by [`Fake::set_micros`], and a key is gone from the millisecond of its end on.
//! - Scripts are compiled once; a key can be taken out and put back at any time ([`Fake::take`], [`Fake::put`]), so that one server
//!   serves many stories.

mod commands;
mod interpreter;
mod layout;
mod structure;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bandog_redis::{Call, Script, Value};
use mlua::{Function, Lua, Table};

use commands::Db;

pub use commands::Entry;
pub use interpreter::GLOBALS;

/// The server.
#[derive(Debug)]
pub struct Fake {
    lua: Lua,
    globals: Table,
    scripts: HashMap<Script, Function>,
    db: Rc<RefCell<Db>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// A server with the scripts that ship.
    pub fn new() -> Self {
        Self::with(|script| script.text().to_owned())
    }

    /// A server whose scripts are not quite ours.
    ///
    /// # Panics
    /// If one of them is not Lua.
    pub fn with(text: impl Fn(Script) -> String) -> Self {
        let (lua, db) = (Lua::new(), Rc::new(RefCell::new(Db::default())));
        interpreter::install(&lua, &db).expect("a fresh interpreter takes our functions");
        let load = |script: Script| (script, lua.load(text(script)).set_name(script.word()).into_function());
        let loaded = Script::ALL.into_iter().map(load);
        let scripts = loaded.map(|(script, text)| (script, text.expect("every script compiles"))).collect();
        Self { globals: lua.globals(), lua, scripts, db }
    }

    /// Runs a script as the server does for `EVALSHA`.
    pub fn run(&self, call: &Call) -> Value {
        self.evaluate(call.script, &[&call.key], &call.args)
    }

    /// Runs a script of one argument once for all of these calls: with all their keys, and their arguments as one.
    pub fn run_together(&self, script: Script, calls: &[Call]) -> Value {
        let keys: Vec<&[u8]> = calls.iter().map(|call| &call.key[..]).collect();
        let packed = calls.iter().flat_map(|call| call.args.concat()).collect();
        self.evaluate(script, &keys, &[packed])
    }

    fn evaluate(&self, script: Script, keys: &[&[u8]], args: &[Vec<u8>]) -> Value {
        self.db.borrow_mut().calls = 0;
        let answer = self.enter(keys, args).and_then(|()| self.scripts[&script].call::<mlua::Value>(()));
        answer.map_or_else(|error| Value::Error(error.to_string()), |answer| interpreter::value(&answer))
    }

    fn enter(&self, keys: &[&[u8]], args: &[Vec<u8>]) -> mlua::Result<()> {
        let keys = keys.iter().map(|key| self.lua.create_string(key)).collect::<mlua::Result<Vec<_>>>()?;
        let args = args.iter().map(|arg| self.lua.create_string(arg)).collect::<mlua::Result<Vec<_>>>()?;
        self.globals.raw_set("ARGV", args)?;
        self.globals.raw_set("KEYS", keys)
    }

    /// Runs a text in the scripts' environment.
    ///
    /// # Errors
    /// Those of the interpreter, and of globals that Redis does not have.
    pub fn try_text(&self, text: &str) -> mlua::Result<mlua::Value> {
        self.lua.load(text).eval()
    }

    /// How many redis.calls the last script made.
    pub fn calls(&self) -> u32 {
        self.db.borrow().calls
    }

    /// What was published since the last look: channel and payload.
    pub fn published(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        std::mem::take(&mut self.db.borrow_mut().published)
    }

    /// Sets the clock.
    pub fn set_micros(&self, micros: u64) {
        self.db.borrow_mut().micros = micros;
    }

    /// Takes a key out of the server, whether or not its end has come.
    pub fn take(&self, key: &[u8]) -> Option<Entry> {
        self.db.borrow_mut().take(key)
    }

    /// Puts something at a key, or nothing.
    pub fn put(&self, key: &[u8], entry: Option<Entry>) {
        self.db.borrow_mut().put(key, entry);
    }

    /// Takes a key's end away, as an operator might.
    pub fn persist(&self, key: &[u8]) {
        self.db.borrow_mut().persist(key);
    }

    /// When a key ends, in milliseconds: nothing without a key, nothing inside without an end.
    pub fn ends(&self, key: &[u8]) -> Option<Option<u64>> {
        self.db.borrow_mut().ends(key)
    }

    /// Whether what stands at a key belongs together.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self, key: &[u8]) -> Result<(), String> {
        self.db.borrow_mut().check(key)
    }
}
