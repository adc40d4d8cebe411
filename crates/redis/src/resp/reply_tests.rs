//! What the parser makes of streams: whole, in pieces, and of bytes that are none.

use proptest::prelude::*;

use super::*;

fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

/// All that a stream tells when it comes in pieces of these lengths, and what is left.
fn told(stream: &[u8], pieces: impl IntoIterator<Item = usize>) -> Result<(Vec<Told>, usize), Broken> {
    let (mut parser, mut told, mut start, mut end) = (Parser::default(), Vec::new(), 0, 0);
    for piece in pieces.into_iter().chain([stream.len()]) {
        end = (end + piece).min(stream.len());
        loop {
            let (taken, one) = parser.next(&stream[start..end])?;
            start += taken;
            match one {
                Some(one) => told.push(one),
                None => break,
            }
        }
    }
    Ok((told, stream.len() - start))
}

fn one(stream: &str) -> Value {
    let (mut told, left) = told(stream.as_bytes(), []).unwrap();
    assert_eq!((told.len(), left), (1, 0), "{stream:?}");
    match told.pop() {
        Some(Told::Reply(value)) => value,
        other => panic!("{stream:?}: {other:?}"),
    }
}

#[test]
fn every_kind_of_answer_is_read() {
    for (stream, value) in [
        ("+OK\r\n", bytes("OK")),
        ("-ERR no\r\n", Value::Error("ERR no".into())),
        (":-12\r\n", Value::Int(-12)),
        ("$3\r\na\r\n\r\n", bytes("a\r\n")),
        ("$0\r\n\r\n", bytes("")),
        ("$-1\r\n", Value::Nil),
        ("*-1\r\n", Value::Nil),
        ("_\r\n", Value::Nil),
        ("*0\r\n", Value::Array(vec![])),
        ("*2\r\n:1\r\n*1\r\n+a\r\n", Value::Array(vec![Value::Int(1), Value::Array(vec![bytes("a")])])),
        ("~2\r\n:1\r\n:2\r\n", Value::Array(vec![Value::Int(1), Value::Int(2)])),
        ("%1\r\n+a\r\n:2\r\n", Value::Array(vec![bytes("a"), Value::Int(2)])),
        ("#t\r\n", Value::Int(1)),
        ("#f\r\n", Value::Int(0)),
        (",1.5\r\n", bytes("1.5")),
        ("(123456789012345678901\r\n", bytes("123456789012345678901")),
        ("=8\r\ntxt:text\r\n", bytes("text")),
        ("!6\r\nERR no\r\n", Value::Error("ERR no".into())),
        ("|1\r\n+ttl\r\n:3\r\n:7\r\n", Value::Int(7)),
        ("*2\r\n|1\r\n+ttl\r\n:3\r\n:7\r\n:8\r\n", Value::Array(vec![Value::Int(7), Value::Int(8)])),
    ] {
        assert_eq!(one(stream), value, "{stream:?}");
    }
}

#[test]
fn pushes_are_told_from_answers() {
    let stream = ">3\r\n+message\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n";
    let (told, _) = told(stream.as_bytes(), []).unwrap();
    assert_eq!(told, [Told::Push(vec![bytes("message"), bytes("a"), bytes("b")]), Told::Reply(Value::Int(1))]);
}

#[test]
fn bytes_that_are_not_resp_end_the_parser() {
    let deep = "*1\r\n".repeat(DEPTH + 1);
    let long = format!("+{}", "a".repeat(LINE));
    for stream in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "H",
        "\r\n",
        ":one\r\n",
        ":\r\n",
        "$x\r\n",
        "$-2\r\n",
        "$1\r\nab\r\n",
        "$67108865\r\n",
        "$99999999999999999999\r\n",
        "*1048577\r\n",
        "%1048577\r\n",
        "+torn\n",
        "*1\r\n>1\r\n+a\r\n",
        &deep,
        &long,
    ] {
        assert!(matches!(told(stream.as_bytes(), []), Err(Broken::Garbage(_))), "{:?}", stream.get(..20));
    }
    // So deep is still fine.
    assert!(told("*1\r\n".repeat(DEPTH).as_bytes(), []).is_ok());
}

#[test]
fn an_answer_of_many_strings_has_a_limit_too() {
    let mut parser = Parser { size: LARGEST - 2 * (4 + ITEM), ..Parser::default() };
    parser.open.push(List { kind: Kind::Items, left: 9, items: Vec::new() });
    assert!(parser.next(b":1\r\n:1\r\n").is_ok());
    assert!(parser.next(b":1\r\n").is_err());
}

#[test]
fn nils_in_nested_lists_weigh_what_they_take() {
    let nils = format!("*1000\r\n{}", "_\r\n".repeat(1_000));
    let (mut parser, mut taken) = (Parser::default(), 0);
    parser.next(b"*1000000\r\n").unwrap();
    while let Ok((length, None)) = parser.next(nils.as_bytes()) {
        assert_eq!(length, nils.len());
        taken += 1_000;
    }
    let values = taken * size_of::<Value>();
    assert!(values < LARGEST && 2 * values > LARGEST / 2, "{taken} nils take {values} bytes");
}

#[test]
fn attributes_count_towards_the_weight_of_an_answer() {
    let mut parser = Parser::default();
    let endless = std::iter::repeat_with(|| parser.next(b"|1\r\n_\r\n_\r\n")).take(LARGEST / ITEM);
    assert!(endless.map(|told| told.map(drop)).any(|told| told.is_err()), "attributes without an answer");
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Int(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Value::Bytes(bytes) => {
            out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Value::Array(items) => {
            out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
            items.iter().for_each(|item| write(item, out));
        }
        Value::Nil => out.extend_from_slice(b"_\r\n"),
        Value::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
    }
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        Just(Value::Nil),
        "[A-Z]{1,8} [a-z ]{0,12}".prop_map(Value::Error),
    ];
    let value =
        leaf.prop_recursive(5, 40, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::Array).boxed());
    prop::collection::vec(value, 0..8)
}

proptest! {
    #[test]
    fn any_split_of_a_stream_tells_the_same(values in values(), pieces in prop::collection::vec(0_usize..24, 0..80)) {
        let mut stream = Vec::new();
        values.iter().for_each(|value| write(value, &mut stream));
        let (told, left) = told(&stream, pieces).unwrap();
        prop_assert_eq!(left, 0);
        prop_assert_eq!(told, values.into_iter().map(Told::Reply).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(stream in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..9) {
        let _ = told(&stream, std::iter::repeat_n(piece, 200));
    }

    // Nearer to the real thing than bytes of any kind.
    #[test]
    fn torn_streams_do_no_harm(values in values(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut stream = Vec::new();
        values.iter().for_each(|value| write(value, &mut stream));
        if !stream.is_empty() {
            let at = at.index(stream.len());
            stream[at] = byte;
            let _ = told(&stream, []);
            let _ = told(&stream[at..], std::iter::repeat_n(1, 400));
        }
    }
}
