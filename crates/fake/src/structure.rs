//! The part of Redis's `struct` library that the scripts use: big-endian, `B`, `I<size>` and `c<length>`.
//!
//! As strict as it can be: what Redis would cut off or wrap around is an error here.

use mlua::{Lua, MultiValue, Table, Value};

/// Numbers of the scripts are exact below this.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// One item of a format.
enum Item {
    Number(usize),
    Text(usize),
}

/// `struct.pack` and `struct.unpack`.
pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("pack", lua.create_function(|lua, args: MultiValue| lua.create_string(pack(&args)?))?)?;
    table.set("unpack", lua.create_function(unpack)?)?;
    Ok(table)
}

fn wrong(text: impl std::fmt::Display) -> mlua::Error {
    mlua::Error::runtime(text)
}

/// The items of a format such as `>I8Bc16`.
fn items(format: &[u8]) -> mlua::Result<impl Iterator<Item = mlua::Result<Item>>> {
    let rest = format.strip_prefix(b">").ok_or_else(|| wrong("only big-endian"))?;
    let letters = rest.split_inclusive(|_| true).enumerate().filter(|(_, letter)| letter[0].is_ascii_alphabetic());
    Ok(letters.map(|(at, letter)| {
        let digits = rest[at + 1..].iter().take_while(|digit| digit.is_ascii_digit());
        let size = digits.fold(None, |size, digit| Some(size.unwrap_or(0) * 10 + usize::from(digit - b'0')));
        match (letter[0], size) {
            (b'B', None) => Ok(Item::Number(1)),
            (b'I', Some(size @ 1..=8)) => Ok(Item::Number(size)),
            (b'c', Some(size)) => Ok(Item::Text(size)),
            _ => Err(wrong("unknown format")),
        }
    }))
}

fn pack(args: &MultiValue) -> mlua::Result<Vec<u8>> {
    let (mut values, mut packed) = (args.iter(), Vec::with_capacity(160));
    let Some(Value::String(format)) = values.next() else { return Err(wrong("a format comes first")) };
    for item in items(&format.as_bytes())? {
        match (item?, values.next()) {
            (Item::Number(size), Some(value)) => {
                let bytes = natural(value)?.to_be_bytes();
                let (high, low) = bytes.split_at(8 - size);
                if high.iter().any(|byte| *byte != 0) {
                    return Err(wrong("a number too large for its field"));
                }
                packed.extend_from_slice(low);
            }
            (Item::Text(size), Some(Value::String(text))) => {
                packed.extend_from_slice(text.as_bytes().get(..size).ok_or_else(|| wrong("a string too short"))?);
            }
            _ => return Err(wrong("as many values as items, each of its kind")),
        }
    }
    values.next().map_or(Ok(packed), |_| Err(wrong("more values than items")))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be a natural number before")]
fn natural(value: &Value) -> mlua::Result<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).map_err(wrong),
        Value::Number(number) if *number >= 0.0 && *number < EXACT && number.fract() == 0.0 => Ok(*number as u64),
        other => Err(wrong(format!("not a natural number: {other:?}"))),
    }
}

fn unpack(lua: &Lua, args: (mlua::String, mlua::String, Option<usize>)) -> mlua::Result<MultiValue> {
    let (format, text, from) = args;
    let (text, mut at, mut values) = (text.as_bytes(), from.unwrap_or(1) - 1, MultiValue::new());
    for item in items(&format.as_bytes())? {
        let item = item?;
        let (Item::Number(size) | Item::Text(size)) = item;
        let part = text.get(at..at + size).ok_or_else(|| wrong("data string too short"))?;
        values.push_back(match item {
            Item::Number(_) => Value::Number(part.iter().fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte))),
            Item::Text(_) => Value::String(lua.create_string(part)?),
        });
        at += size;
    }
    values.push_back(Value::Number((at + 1) as f64));
    Ok(values)
}
