//! What every bandog store must prove, and how a recorded run is judged.
//!
//! | module | what it is |
//! |---|---|
//! | [`history`] | an exact checker: were these holds, tokens and writes those of a correct lock? |

pub mod history;
