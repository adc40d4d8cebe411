//! A proxy that lets every piece of a stream arrive so much later, in both directions, without holding up the next.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use peers::clock::now;

/// Starts one before a port, and gives its own port. It ends with the process.
pub(crate) fn start(upstream: u16, one_way: Duration) -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else { return };
            spawn(move || carry(from_client, server, one_way));
            spawn(move || carry(from_server, client, one_way));
        }
    });
    Ok(port)
}

fn carry(mut from: TcpStream, mut to: TcpStream, one_way: Duration) {
    let (send, pieces) = channel::<(u64, Vec<u8>)>();
    spawn(move || {
        for (due, piece) in pieces {
            sleep(Duration::from_nanos(due.saturating_sub(now())));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let due = now() + one_way.as_nanos() as u64;
        if send.send((due, buffer[..read].to_vec())).is_err() {
            return;
        }
    }
}
