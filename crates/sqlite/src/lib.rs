//! Locks in a SQLite file, for the processes of one machine.
