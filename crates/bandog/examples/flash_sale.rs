//! A flash sale: many buyers, several shops, one stock. A lock per item keeps the count right, and the database refuses
//! whoever comes too late. Takes a moment, needs no server.
//!
//! ```sh
//! cargo run -p bandog --example flash_sale [URL OF A STORE]
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use bandog::{Locks, RunError, Token, locked};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ITEMS: [(&str, u32); 2] = [("lamp", 10), ("chair", 25)];
const SHOPS: usize = 3;
const BUYERS: usize = 60;

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:sale".to_owned());
    println!("{}", tell(&url).await?);
    Ok(())
}

/// Plays the sale; says how it ended.
pub(crate) async fn tell(url: &str) -> Outcome<String> {
    let database = Arc::new(Database::stocked());
    let mut shops = Vec::new();
    for _ in 0..SHOPS {
        shops.push(Locks::connect(url).await?);
    }
    let mut buyers = Vec::new();
    for buyer in 0..BUYERS {
        let (locks, database, item) =
            (shops[buyer % SHOPS].clone(), Arc::clone(&database), ITEMS[buyer % ITEMS.len()].0);
        buyers.push(tokio::spawn(async move { buy(&locks, &database, item).await }));
    }
    let mut sales = Vec::new();
    for (buyer, bought) in buyers.into_iter().enumerate() {
        sales.extend(bought.await??.map(|token| (ITEMS[buyer % ITEMS.len()].0, token)));
    }
    for (item, stock) in ITEMS {
        let left = database.read(item);
        println!("{item}: {stock} in stock, {left} left");
        assert_eq!(left, 0, "more buyers than stock: all is sold, and nothing twice");
    }
    // A buyer that was paused since the beginning of the sale and believes to be alone.
    let lamps = sales.iter().filter(|(item, _)| *item == "lamp");
    let first = lamps.map(|(_, token)| *token).min().ok_or("nobody bought a lamp")?;
    let refused = database.write("lamp", 9, first).is_err();
    println!("a write with the token of the first lamp was {}", if refused { "refused" } else { "let through" });
    for shop in shops {
        shop.shutdown().await?;
    }
    let sold = sales.len();
    Ok(format!(
        "{sold} sold to {BUYERS} buyers at {SHOPS} shops, nothing twice; the late write was refused: {refused}."
    ))
}

/// Takes one from the stock, if there is one, under the lock of the item alone: other items are sold meanwhile.
#[locked("stock:{item}", wait = "30s", hold = hold)]
async fn buy(locks: &Locks, database: &Database, item: &str) -> Result<Option<Token>, SaleError> {
    let left = database.read(item);
    // Whoever reads here, without a lock, sells the same piece again.
    tokio::task::yield_now().await;
    let Some(less) = left.checked_sub(1) else { return Ok(None) };
    database.write(item, less, hold.token())?;
    Ok(Some(hold.token()))
}

#[derive(Debug, thiserror::Error)]
enum SaleError {
    #[error(transparent)]
    Lock(#[from] RunError),
    #[error("a newer holder of the lock has written already")]
    Stale,
}

/// The stock and the highest token that has written it: `UPDATE stock SET left = $1, token = $2 WHERE item = $3 AND token <= $2`.
struct Database(Mutex<HashMap<&'static str, (u32, Option<Token>)>>);

impl Database {
    fn stocked() -> Self {
        Self(Mutex::new(ITEMS.map(|(item, stock)| (item, (stock, None))).into()))
    }

    fn read(&self, item: &str) -> u32 {
        self.rows().get(item).map_or(0, |(left, _)| *left)
    }

    fn write(&self, item: &str, left: u32, token: Token) -> Result<(), SaleError> {
        match self.rows().get_mut(item) {
            Some((_, Some(seen))) if token < *seen => Err(SaleError::Stale),
            Some(row) => {
                *row = (left, Some(token));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn rows(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, (u32, Option<Token>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
