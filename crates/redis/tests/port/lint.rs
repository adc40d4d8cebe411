//! Every script has its head, compiles, and touches no global but Redis's own.

use std::path::Path;

use bandog_fake::Fake;
use bandog_redis::Script;
use mlua::Lua;

#[test]
fn every_file_says_what_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lua");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("-- ") && first.len() > 20, "{file:?} has no head");
        assert!(!text.starts_with("#!"), "{file:?}: old servers know no such line");
        for (number, line) in text.lines().enumerate() {
            assert!(line.len() <= 122, "{file:?}:{} is too long", number + 1);
            assert!(!line.contains("tostring"), "{file:?}:{} loses digits", number + 1);
        }
    }
}

#[test]
fn the_engine_names_its_functions_in_advance() {
    let text = Script::Tend.text();
    let made: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("function f.")?.split('(').next()).collect();
    assert!(made.len() > 40, "{made:?}");
    let unnamed: Vec<_> = made.iter().filter(|name| !text.contains(&format!("{name} = 0"))).collect();
    assert!(unnamed.is_empty(), "{unnamed:?} are missing where f is made, in state.lua");
}

#[test]
fn the_fake_refuses_unknown_globals() {
    let fake = Fake::new();
    for wild in ["leak = 1", "return leak", "return tostring(1)", "return os.time()"] {
        assert!(fake.try_text(wild).is_err(), "{wild}");
    }
    assert!(fake.try_text("local a = math.max(1, 2) return a").is_ok());
}

// Running a script shows only the branches it takes, so the bytecode is asked.
#[test]
fn no_branch_of_any_script_reaches_for_a_global() {
    let lua = Lua::new();
    for script in Script::ALL {
        let code = lua.load(script.text()).into_function().unwrap().dump(true);
        let (read, written) = globals::of(&code);
        assert!(written.is_empty(), "{script:?} writes {written:?}");
        let strange: Vec<_> = read.iter().filter(|name| !bandog_fake::GLOBALS.contains(&name.as_str())).collect();
        assert!(strange.is_empty(), "{script:?} reads {strange:?}");
        assert!(read.contains("redis") && read.contains("KEYS"), "{script:?}: the bytecode was not understood");
    }
    let code = lua.load("if redis then local f = function() leak = other end end").into_function().unwrap().dump(true);
    let (read, written) = globals::of(&code);
    assert!(read.contains("other") && written.contains("leak"), "{read:?} {written:?}");
}

mod globals {
    //! Reads Lua 5.1 bytecode just far enough to find GETGLOBAL and SETGLOBAL.

    use std::collections::BTreeSet;

    const GETGLOBAL: u32 = 5;
    const SETGLOBAL: u32 = 7;
    const HEADER: usize = 12;

    type Names = BTreeSet<String>;

    pub(super) fn of(code: &[u8]) -> (Names, Names) {
        assert_eq!(&code[..5], b"\x1bLua\x51", "Lua 5.1 bytecode");
        let mut reader = Reader { code, at: HEADER, read: Names::new(), written: Names::new() };
        reader.function();
        (reader.read, reader.written)
    }

    fn size(number: u64) -> usize {
        number.try_into().expect("a size in memory")
    }

    struct Reader<'a> {
        code: &'a [u8],
        at: usize,
        read: Names,
        written: Names,
    }

    impl Reader<'_> {
        fn take(&mut self, count: usize) -> &[u8] {
            self.at += count;
            &self.code[self.at - count..self.at]
        }

        fn int(&mut self) -> u32 {
            u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
        }

        fn text(&mut self) -> String {
            let length = u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"));
            String::from_utf8_lossy(self.take(size(length))).trim_end_matches('\0').to_owned()
        }

        fn function(&mut self) {
            self.text();
            self.take(12);
            let instructions: Vec<u32> = (0..self.int()).map(|_| self.int()).collect();
            let constants: Vec<String> = (0..self.int()).map(|_| self.constant()).collect();
            for instruction in instructions {
                let name = || constants[size((instruction >> 14).into())].clone();
                match instruction & 63 {
                    GETGLOBAL => drop(self.read.insert(name())),
                    SETGLOBAL => drop(self.written.insert(name())),
                    _ => {}
                }
            }
            (0..self.int()).for_each(|_| self.function());
            let lines = size(self.int().into());
            self.take(4 * lines);
            (0..self.int()).for_each(|_| {
                self.text();
                self.take(8);
            });
            (0..self.int()).for_each(|_| drop(self.text()));
        }

        fn constant(&mut self) -> String {
            match self.take(1)[0] {
                0 => {}
                1 => drop(self.take(1).len()),
                3 => drop(self.take(8).len()),
                _ => return self.text(),
            }
            String::new()
        }
    }
}
