//! How many keys a server has, whoever they belong to. The command asks before it measures.

use bandog_core::checkup::Pace;
use bandog_core::store::StoreError;

use super::patient::Patient;
use crate::config::RedisConfig;
use crate::value::Value;

/// The number of keys in all databases of a server; `None` if it does not tell, or cannot be asked.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (config, _) = bandog_redis::RedisConfig::from_url("redis://127.0.0.1:6379")?;
/// assert_eq!(bandog_redis::population(&config).await?, Some(0), "somebody else's data is here");
/// # Ok(()) }
/// ```
///
/// # Errors
/// When the address leads nowhere: its certificates cannot be read.
pub async fn population(config: &RedisConfig) -> Result<Option<u64>, StoreError> {
    let pace = Pace::default();
    let patient = match Patient::open(config, &pace).await {
        Ok(patient) => patient,
        Err(super::patient::Barred::Unprepared(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    Ok(match patient.say(&["INFO", "keyspace"]).await {
        Value::Bytes(text) => Some(counted(&String::from_utf8_lossy(&text))),
        _ => None,
    })
}

fn counted(info: &str) -> u64 {
    let keys = |line: &str| line.strip_prefix("db")?.split_once(":keys=")?.1.split(',').next()?.parse::<u64>().ok();
    info.lines().filter_map(keys).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_all_databases_are_counted() {
        assert_eq!(counted("# Keyspace\r\n"), 0);
        assert_eq!(counted("# Keyspace\r\ndb0:keys=12,expires=3,avg_ttl=0\r\ndb3:keys=30,expires=0,avg_ttl=0\r\n"), 42);
    }
}
