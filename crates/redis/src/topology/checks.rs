//! Is this server fit for locks, and may this user use it? Sessions ask the first at every opening, [`RedisStore::connect`](crate::RedisStore::connect) the second once.

use bandog_core::holder::InboxId;
use bandog_core::store::{StoreError, StoreErrorKind};
use bandog_core::time::{LeaseTime, RunId};

use crate::announce;
use crate::config::RedisConfig;
use crate::resp::Command;
use crate::value::Value;

use super::classify::refused;

/// The oldest version whose scripts and ACLs do what ours need.
pub(crate) const OLDEST: (u64, u64) = (6, 2);

/// What a user must be allowed to run, beside its keys and channels.
pub(crate) const RULE_COMMANDS: &[&str] = &[
    "eval",
    "evalsha",
    "script|load",
    "time",
    "exists",
    "mget",
    "set",
    "mset",
    "setrange",
    "hget",
    "hmget",
    "hkeys",
    "hset",
    "hdel",
    "del",
    "pexpireat",
    "pttl",
    "publish",
    "subscribe",
    "unsubscribe",
    "info",
    "scan",
    "ping",
];

/// Tries every command of the scripts on a key of ours that nobody uses, and says which are forbidden. Nothing is left behind.
const PROBE: &str = "
local missing = {}
local function try(...)
  local reply = redis.pcall(...)
  local err = type(reply) == 'table' and reply.err
  if err and (err:find('user executing the script', 1, true) or err:find('ACL failure', 1, true)) then
    missing[#missing + 1] = (...)
  end
end
try('TIME')
try('EXISTS', KEYS[1])
try('MGET', KEYS[1])
try('HMGET', KEYS[1], 'a')
try('HGET', KEYS[1], 'a')
try('HKEYS', KEYS[1])
try('HSET', KEYS[1], 'a', 'b')
try('HDEL', KEYS[1], 'a')
try('SET', KEYS[1], '')
try('MSET', KEYS[1], '')
try('SETRANGE', KEYS[1], 0, '')
try('PTTL', KEYS[1])
try('PEXPIREAT', KEYS[1], 1)
try('DEL', KEYS[1])
return missing
";

/// What a server says about itself.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) run: RunId,
    pub(crate) time: LeaseTime,
    version: String,
    role: String,
    /// Of a replica.
    master: Option<String>,
    cluster: bool,
    policy: Option<String>,
}

impl Facts {
    /// The questions; [`Facts::read`] takes the answers.
    pub(crate) fn questions() -> [Command; 4] {
        let info = |section: &str| Command::new("INFO").arg(section);
        [info("server"), info("replication"), info("memory"), Command::new("TIME")]
    }

    pub(crate) fn read(config: &RedisConfig, answers: &[Value]) -> Result<Self, StoreError> {
        let mut info = String::new();
        for answer in answers {
            match answer {
                Value::Bytes(text) => info.push_str(&String::from_utf8_lossy(text)),
                Value::Error(text) => return Err(refused(config, None, text)),
                _ => {}
            }
        }
        let field = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
        let (run, time) = (field("run_id").and_then(run_id), answers.last().and_then(time));
        let (Some(run), Some(time), Some(version), Some(role)) = (run, time, field("redis_version"), field("role"))
        else {
            return Err(unfit(format!("{config}: this is no Redis that could keep locks")));
        };
        Ok(Self {
            run,
            time,
            version: version.to_owned(),
            role: role.to_owned(),
            master: field("master_host").zip(field("master_port")).map(|(host, port)| format!("{host}:{port}")),
            // Redis and Valkey name it differently.
            cluster: field("redis_mode").or_else(|| field("server_mode")) == Some("cluster"),
            policy: field("maxmemory_policy").map(str::to_owned),
        })
    }

    /// Refuses a server that would lose locks or cannot keep them. What is only risky is given back as a warning.
    pub(crate) fn judge(&self, config: &RedisConfig) -> Result<Option<String>, StoreError> {
        let numbers: Vec<u64> = self.version.split('.').map_while(|part| part.parse().ok()).collect();
        if let [major, minor, ..] = numbers[..]
            && (major, minor) < OLDEST
        {
            let (major, minor) = OLDEST;
            return Err(unfit(format!("{config} is version {}; locks need {major}.{minor} or later", self.version)));
        }
        if self.role != "master" {
            // INFO keeps the old word.
            let role = if self.role == "slave" { "replica" } else { &self.role };
            let master = self.master.as_ref().map(|master| format!(", redis://{master}")).unwrap_or_default();
            return Err(unfit(format!(
                "{config} is a {role}, which forgets and refuses locks; use its master{master}"
            )));
        }
        if self.cluster {
            return Err(unfit(format!("{config} is a node of a cluster; a single server is needed")));
        }
        let Some(policy) = self.policy.as_deref().filter(|policy| *policy != "noeviction") else { return Ok(None) };
        let risk = format!("{config} may evict locks: maxmemory-policy is {policy}; set it to noeviction");
        if config.strict { Err(unfit(risk)) } else { Ok(Some(risk)) }
    }
}

/// The commands that find out whether this user may do all that is needed; [`judge_probe`] takes the answers.
pub(crate) fn probe(config: &RedisConfig) -> Vec<Command> {
    let keys = config.keys();
    let channel = keys.channel(InboxId::from_bits(0));
    let key = [config.prefix.as_bytes(), format!("probe:{:016x}", random()).as_bytes()].concat();
    let commands = [
        Command::new("EVAL").arg(PROBE).number(1).arg(key),
        // A script that nobody has: only whether it may be asked for counts.
        Command::new("EVALSHA").arg("0".repeat(40)).number(0),
        Command::new("PUBLISH").arg(&channel).arg(""),
        Command::new("SUBSCRIBE").arg(&channel),
        Command::new("UNSUBSCRIBE").arg(&channel),
        Command::new("SCAN").number(0).arg("COUNT").number(1),
        Command::new("PING"),
    ];
    let notice = config.announce.then(|| Command::new("PUBLISH").arg(announce::channels(config)).arg(""));
    commands.into_iter().chain(notice).collect()
}

/// Refuses a user that lacks a permission, and says which rule to add.
pub(crate) fn judge_probe(config: &RedisConfig, answers: &[Value]) -> Result<(), StoreError> {
    for answer in answers {
        match answer {
            Value::Error(text) if !text.starts_with("NOSCRIPT") => return Err(refused(config, None, text)),
            Value::Array(missing) if answer == &answers[0] && !missing.is_empty() => {
                return Err(forbidden(config, missing));
            }
            _ => {}
        }
    }
    Ok(())
}

fn forbidden(config: &RedisConfig, missing: &[Value]) -> StoreError {
    let word = |value: &Value| match value {
        Value::Bytes(word) => String::from_utf8_lossy(word).into_owned(),
        _ => String::new(),
    };
    let missing = missing.iter().map(word).collect::<Vec<_>>().join(", ");
    let message = format!("{config}: this user may not run {missing} on the keys of locks; {}", rule(config, ""));
    StoreError::not_executed(StoreErrorKind::Denied, message)
}

/// What to tell the server so that this user may keep locks, after it refused with `text`.
///
/// A user who may use all keys, or all channels, cannot be given one more pattern: the server refuses the whole rule. So it has
/// patterns only where the refusal is about them.
pub(crate) fn rule(config: &RedisConfig, text: &str) -> String {
    let user = config.login();
    let glob = String::from_utf8_lossy(&config.keys().glob()).into_owned();
    let start = glob.strip_suffix('*').unwrap_or(&glob);
    let keys = if text.contains(" key") { format!(" ~{glob}") } else { String::new() };
    let mut channels = String::new();
    if text.contains(" channel") {
        channels = format!(" &{start}inbox:*");
        if config.announce {
            channels += &format!(" &{start}release:*");
        }
    }
    let select = Some("select").filter(|_| config.db != 0);
    let commands: String = RULE_COMMANDS.iter().copied().chain(select).map(|command| format!(" +{command}")).collect();
    format!("allow it with: ACL SETUSER {user}{keys}{channels}{commands}")
}

fn unfit(message: String) -> StoreError {
    StoreError::not_executed(StoreErrorKind::Unfit, message)
}

fn run_id(text: &str) -> Option<RunId> {
    u64::from_str_radix(text.get(..16)?, 16).ok().map(RunId)
}

fn time(answer: &Value) -> Option<LeaseTime> {
    let Value::Array(parts) = answer else { return None };
    let number = |at: usize| match parts.get(at)? {
        Value::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    Some(LeaseTime::from_millis(number(0)?.checked_mul(1_000)?.checked_add(number(1)? / 1_000)?))
}

/// A number that nobody else draws.
pub(crate) fn random() -> u64 {
    // Without randomness the jitter is the same for all and the probe's key is known: neither is worth a failure.
    getrandom::u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn config() -> RedisConfig {
        RedisConfig::from_url("redis://ann:pw@host?prefix=a*:").unwrap().0
    }

    fn facts(version: &str, role: &str, policy: &str) -> Result<Facts, StoreError> {
        let info = format!(
            "# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\nrun_id:0123456789abcdef0123\r\n\
             role:{role}\r\nmaxmemory_policy:{policy}\r\n"
        );
        let time = Value::Array(vec![Value::Bytes(b"12".to_vec()), Value::Bytes(b"345678".to_vec())]);
        Facts::read(&config(), &[Value::Bytes(info.into_bytes()), time])
    }

    #[test]
    fn a_server_is_judged_by_what_it_says() {
        let fit = facts("7.0.15", "master", "noeviction").unwrap();
        assert_eq!((fit.run, fit.time), (RunId(0x0123_4567_89ab_cdef), LeaseTime::from_millis(12_345)));
        assert_eq!(fit.judge(&config()).unwrap(), None);
        for (version, role) in [("6.0.9", "master"), ("5.0", "master"), ("7.0.15", "slave")] {
            let error = facts(version, role, "noeviction").unwrap().judge(&config()).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::Unfit, "{error}");
        }
        assert!(facts("6.2.0", "master", "noeviction").unwrap().judge(&config()).is_ok());
        assert!(facts("10.1", "master", "noeviction").unwrap().judge(&config()).is_ok());
    }

    #[test]
    fn a_replica_is_refused_with_the_address_of_its_master() {
        let replica = facts("7.0.15", "slave\r\nmaster_host:db1\r\nmaster_port:6380", "noeviction").unwrap();
        let error = replica.judge(&config()).unwrap_err().message;
        assert!(
            error.ends_with("is a replica, which forgets and refuses locks; use its master, redis://db1:6380"),
            "{error}"
        );
        let alone = facts("7.0.15", "slave", "noeviction").unwrap().judge(&config()).unwrap_err().message;
        assert!(alone.ends_with("use its master") && !alone.contains("slave"), "{alone}");
    }

    #[test]
    fn a_node_of_a_cluster_is_refused_by_either_name() {
        for mode in ["redis_mode", "server_mode"] {
            let info =
                format!("redis_version:7.2.4\r\n{mode}:cluster\r\nrun_id:0123456789abcdef0123\r\nrole:master\r\n");
            let time = Value::Array(vec![Value::Bytes(b"12".to_vec()), Value::Bytes(b"345678".to_vec())]);
            let facts = Facts::read(&config(), &[Value::Bytes(info.into_bytes()), time]).unwrap();
            assert!(facts.judge(&config()).unwrap_err().message.contains("cluster"), "{mode}");
        }
    }

    #[test]
    fn eviction_is_a_warning_or_an_error() {
        let risky = facts("7.0.15", "master", "allkeys-lru").unwrap();
        assert!(risky.judge(&config()).unwrap().unwrap().contains("allkeys-lru"));
        let strict = RedisConfig { strict: true, ..config() };
        assert!(risky.judge(&strict).unwrap_err().message.contains("noeviction"));
    }

    #[test]
    fn what_is_no_redis_is_refused() {
        assert!(Facts::read(&config(), &[Value::Bytes(b"hello".to_vec())]).is_err());
        assert!(Facts::read(&config(), &[]).is_err());
    }

    #[test]
    fn the_rule_and_the_probe_cover_what_the_scripts_call() {
        for (refusal, start) in [
            ("NOPERM this user has no permissions to run the 'hkeys' command", "+eval "),
            ("NOPERM this user has no permissions to access one of the keys used as arguments", "~a\\*:* +eval "),
            ("NOPERM No permissions to access a channel", "&a\\*:inbox:* +eval "),
        ] {
            let told = rule(&config(), refusal);
            assert!(told.contains(&format!("ACL SETUSER ann {start}")), "{told}");
        }
        for script in Script::ALL {
            let calls = script.text().split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
            let sent = script.text().split("send('").skip(1).filter_map(|rest| rest.split('\'').next());
            for command in calls.chain(sent) {
                let known = RULE_COMMANDS.contains(&command.to_lowercase().as_str());
                assert!(known, "{command} of {script:?} is not in the rule");
                assert!(command == "PUBLISH" || PROBE.contains(&format!("'{command}'")), "{command} is not probed");
            }
        }
    }
}
