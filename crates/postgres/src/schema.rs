//! The tables: the statements that make them, and the check of what is there.

use bandog_core::format::Format;
use bandog_core::store::{StoreError, StoreErrorKind};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::error::{self, Step};

/// Where the tables are unless somebody says otherwise.
pub(crate) const DEFAULT: &str = "bandog";

const DDL: &str = include_str!("schema.sql");

/// Makers take turns: two that make a schema at once would be in each other's way.
const TURN: i64 = 0x6264_6f67;

/// The statements that make the tables, for whoever may not create them to pass on.
///
/// ```
/// assert!(bandog_postgres::ddl("bandog").contains("CREATE TABLE IF NOT EXISTS bandog.lock"));
/// ```
pub fn ddl(schema: &str) -> String {
    DDL.replace("{schema}", schema).replace("{format}", &Format::NEWEST.to_string())
}

/// Whether this is a name that needs no quotes.
pub(crate) fn is_plain(schema: &str) -> bool {
    let is_word = schema.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_word && (1..=63).contains(&schema.len()) && !schema.starts_with(|first: char| first.is_ascii_digit())
}

/// Makes the tables where they are missing, and refuses those of a format that this build does not read.
pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<(), StoreError> {
    let failed = |error| error::explain(Step::Opening, &error);
    let table = format!("{schema}.lock");
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    let there: bool = client.query_typed_one(sql, &[(&table, Type::TEXT)]).await.map_err(failed)?.get(0);
    if !there {
        make(client, schema).await?;
    }
    let sql = format!("SELECT format FROM {schema}.store");
    let number: i16 = client.query_typed_one(&sql, &[]).await.map_err(failed)?.get(0);
    match u8::try_from(number).ok().filter(|number| Format::new(*number).is_some()) {
        Some(_) => Ok(()),
        None => {
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            let message = Format::unknown(&format!("the schema {schema}"), number);
            Err(StoreError::not_executed(StoreErrorKind::Unfit, message))
        }
    }
}

async fn make(client: &Client, schema: &str) -> Result<(), StoreError> {
    let sql = format!("BEGIN; SELECT pg_advisory_xact_lock({TURN}); {} COMMIT", ddl(schema));
    let Err(error) = client.batch_execute(&sql).await else { return Ok(()) };
    drop(client.batch_execute("ROLLBACK").await);
    let mut told = error::explain(Step::Opening, &error);
    if told.kind == StoreErrorKind::Denied {
        told.message = format!(
            "{}; let somebody who may create a schema run what `bandog schema postgres` prints, and grant its tables to this user",
            told.message
        );
    }
    Err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_is_a_word_that_needs_no_quotes() {
        for plain in ["bandog", "a", "_x9"] {
            assert!(is_plain(plain), "{plain}");
        }
        let long = "a".repeat(64);
        for other in ["", "9a", "A", "a b", "a;drop", "a\"", "ä", &long] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
