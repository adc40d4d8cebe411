//! The part of Redis's `struct` library that the scripts use: big-endian, `B`, `I<size>`, `c<length>`, to unpack `x` and, to pack, `c0`.
//!
//! As strict as it can be: what Redis would cut off or wrap around is an error here.

use mlua::{Lua, MultiValue, Table, Value};

/// Numbers of the scripts are exact below this.
const EXACT: u64 = 1 << 53;

/// One item of a format.
enum Item {
    Number(usize),
    Text(usize),
    Skipped,
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
            (b'x', None) => Ok(Item::Skipped),
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
            (Item::Text(0), Some(Value::String(text))) => packed.extend_from_slice(&text.as_bytes()),
            (Item::Text(size), Some(Value::String(text))) => {
                packed.extend_from_slice(text.as_bytes().get(..size).ok_or_else(|| wrong("a string too short"))?);
            }
            _ => return Err(wrong("as many values as items, each of its kind")),
        }
    }
    values.next().map_or(Ok(packed), |_| Err(wrong("more values than items")))
}

// A whole number comes as an integer.
fn natural(value: &Value) -> mlua::Result<u64> {
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok()).filter(|number| *number < EXACT);
    number.ok_or_else(|| wrong(format!("not a natural number: {value:?}")))
}

fn unpack(lua: &Lua, args: (mlua::String, mlua::String, Option<usize>)) -> mlua::Result<MultiValue> {
    let (format, text, from) = args;
    let first = from.unwrap_or(1).checked_sub(1).ok_or_else(|| wrong("positions begin at 1"))?;
    let (text, mut at, mut values) = (text.as_bytes(), first, MultiValue::new());
    for item in items(&format.as_bytes())? {
        let item = item?;
        let size = match item {
            Item::Number(size) | Item::Text(size) => size,
            Item::Skipped => 1,
        };
        if size == 0 {
            return Err(wrong("c0 only packs"));
        }
        let part = text.get(at..at + size).ok_or_else(|| wrong("data string too short"))?;
        values.push_back(match item {
            Item::Skipped => {
                at += size;
                continue;
            }
            Item::Number(_) => Value::Number(part.iter().fold(0.0, |sum, byte| sum * 256.0 + f64::from(*byte))),
            Item::Text(_) => Value::String(lua.create_string(part)?),
        });
        at += size;
    }
    values.push_back(Value::Number((at + 1) as f64));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use crate::Fake;

    #[test]
    fn what_is_packed_is_unpacked() {
        let text = "local a, b, c, at = struct.unpack('>I8Bc3', '-' .. struct.pack('>I8Bc3', 2^52, 255, 'abcd'), 2)
            return a == 2^52 and b == 255 and c == 'abc' and at == 14";
        assert_eq!(Fake::new().try_text(text).unwrap(), mlua::Value::Boolean(true));
        let whole = "return struct.pack('>Bc0', 65, 'bc') == 'Abc'";
        assert_eq!(Fake::new().try_text(whole).unwrap(), mlua::Value::Boolean(true));
    }

    #[test]
    fn what_would_be_cut_or_wrapped_is_an_error() {
        let fake = Fake::new();
        for wrong in ["pack('I8', 1)", "pack('>B', 256)", "pack('>I8', -1)", "pack('>I8', 0.5)", "pack('>I8', 2^53)"] {
            assert!(fake.try_text(&format!("return struct.{wrong}")).is_err(), "{wrong}");
        }
        for wrong in [
            "pack('>B')",
            "pack('>B', 1, 2)",
            "pack('>c3', 'ab')",
            "unpack('>I8', 'short')",
            "unpack('>B', 'a', 0)",
            "unpack('>c0', 'a')",
        ] {
            assert!(fake.try_text(&format!("return struct.{wrong}")).is_err(), "{wrong}");
        }
    }
}
