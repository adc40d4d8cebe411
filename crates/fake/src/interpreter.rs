//! The interpreter around the scripts: `redis` and `struct` as Redis has them, nothing else, and values on their way in and out.

use std::cell::RefCell;
use std::rc::Rc;

use bandog_redis::Value;
use mlua::{Lua, MultiValue, Variadic};

use crate::commands::{Db, Outcome};
use crate::structure;

/// What a script may know of the world around it.
pub const GLOBALS: [&str; 13] = [
    "redis", "struct", "math", "string", "table", "ipairs", "pairs", "select", "type", "pcall", "unpack", "KEYS",
    "ARGV",
];

pub(crate) fn install(lua: &Lua, db: &Rc<RefCell<Db>>) -> mlua::Result<()> {
    let redis = lua.create_table()?;
    let (calling, trying) = (Rc::clone(db), Rc::clone(db));
    redis.set("call", lua.create_function(move |lua, args: MultiValue| call(lua, &calling, args, true))?)?;
    redis.set("pcall", lua.create_function(move |lua, args: MultiValue| call(lua, &trying, args, false))?)?;
    let error = |lua: &Lua, text: String| lua.create_table_from([("err", text)]);
    redis.set("error_reply", lua.create_function(error)?)?;
    let globals = lua.globals();
    globals.set("redis", redis)?;
    globals.set("struct", structure::table(lua)?)?;
    let names: Vec<String> =
        globals.pairs::<String, mlua::Value>().filter_map(|pair| pair.ok().map(|(k, _)| k)).collect();
    let strange = names.into_iter().filter(|name| !GLOBALS.contains(&name.as_str()));
    strange.collect::<Vec<_>>().into_iter().try_for_each(|name| globals.raw_set(name, mlua::Nil))?;
    let guard = lua.create_table()?;
    let wild = |lua: &Lua, args: Variadic<mlua::Value>| -> mlua::Result<()> {
        let _ = lua;
        Err(mlua::Error::runtime(format!("an unknown global: {:?}", args.get(1))))
    };
    guard.set("__index", lua.create_function(wild)?)?;
    guard.set("__newindex", lua.create_function(wild)?)?;
    globals.set_metatable(Some(guard))
}

fn call(lua: &Lua, db: &RefCell<Db>, args: MultiValue, raises: bool) -> mlua::Result<mlua::Value> {
    let args = args.iter().map(argument).collect::<mlua::Result<Vec<_>>>()?;
    match db.borrow_mut().command(&args) {
        Ok(outcome) => shown(lua, outcome),
        Err(text) if raises => Err(mlua::Error::runtime(text)),
        Err(text) => lua.create_table_from([("err", text)]).map(mlua::Value::Table),
    }
}

// The server prints numbers with all their digits, unlike Lua itself.
fn argument(value: &mlua::Value) -> mlua::Result<Vec<u8>> {
    match value {
        mlua::Value::String(text) => Ok(text.as_bytes().to_vec()),
        mlua::Value::Integer(number) => Ok(number.to_string().into_bytes()),
        mlua::Value::Number(number) => Ok(format!("{number}").into_bytes()),
        _ => Err(mlua::Error::runtime("commands take strings and numbers")),
    }
}

fn shown(lua: &Lua, outcome: Outcome) -> mlua::Result<mlua::Value> {
    Ok(match outcome {
        Outcome::Int(number) => mlua::Value::Number(number as f64),
        Outcome::Bytes(Some(bytes)) => mlua::Value::String(lua.create_string(bytes)?),
        Outcome::Bytes(None) => mlua::Value::Boolean(false),
        Outcome::List(list) => {
            let items =
                list.into_iter().map(|item| shown(lua, Outcome::Bytes(item))).collect::<mlua::Result<Vec<_>>>()?;
            mlua::Value::Table(lua.create_sequence_from(items)?)
        }
    })
}

/// What a client gets for what a script returns: lists end at the first nil, numbers lose their fraction.
pub(crate) fn value(answer: &mlua::Value) -> Value {
    match answer {
        mlua::Value::Integer(number) => Value::Int(*number),
        mlua::Value::Number(number) => Value::Int(format!("{:.0}", number.trunc()).parse().expect("an integer")),
        mlua::Value::String(text) => Value::Bytes(text.as_bytes().to_vec()),
        mlua::Value::Table(table) if table.contains_key("err").unwrap_or(false) => {
            Value::Error(table.get("err").expect("the words of an error"))
        }
        mlua::Value::Table(table) => Value::Array(
            table.clone().sequence_values::<mlua::Value>().map(|item| value(&item.expect("an item"))).collect(),
        ),
        mlua::Value::Boolean(true) => Value::Int(1),
        _ => Value::Nil,
    }
}
