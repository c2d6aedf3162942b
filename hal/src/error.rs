//! What can go wrong, as data.

use std::fmt;

/// Result of every fallible call of the contract.
pub type Result<T> = std::result::Result<T, Error>;

/// One error enum for all backends. Printed as one line that names the thing and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A reservation does not fit.
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes left.
        free: u64,
        /// What the memory was for.
        purpose: String,
    },
    /// No kernel on this device does what the descriptor asks.
    Unsupported {
        /// Operator or facility.
        op: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A descriptor whose own fields contradict each other or the contract.
    BadDescriptor {
        /// Operator identifier.
        op: &'static str,
        /// Which field and why.
        why: String,
    },
    /// A view that does not fit the operand it is given for.
    BadOperand {
        /// Operator identifier, or the call that took the view.
        op: &'static str,
        /// Name of the operand.
        operand: &'static str,
        /// What differs.
        why: String,
    },
    /// A stream, graph, ticket or allocation of another backend.
    ForeignObject {
        /// Kind of object.
        what: &'static str,
    },
    /// A call that a capturing stream cannot take, or a capture left open.
    NotWhileCapturing {
        /// The call.
        what: &'static str,
    },
    /// Another rank of the group failed or did not arrive in time.
    Peer {
        /// The rank that is missing.
        rank: u32,
    },
    /// A driver call failed.
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's code.
        code: i32,
        /// The driver's words, or ours.
        meaning: String,
    },
    /// The device faulted: every later call answers the same until it is reopened.
    DeviceLost {
        /// The operator launched last, the first suspect.
        last_op: String,
    },
    /// A row whose proof on this board is missing, asked for by name.
    Unverified {
        /// The row.
        row: String,
        /// The board.
        board: String,
    },
    /// No such device, or none usable.
    NoDevice {
        /// What was asked for.
        name: String,
        /// Why there is none, and what to do.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfMemory { wanted, free, purpose } => {
                write!(f, "out of device memory: {purpose} needs {wanted} bytes, {free} are free")
            }
            Error::Unsupported { op, reason } => write!(f, "{op} is not supported here: {reason}"),
            Error::BadDescriptor { op, why } => write!(f, "{op}: bad descriptor: {why}"),
            Error::BadOperand { op, operand, why } => write!(f, "{op}: operand {operand}: {why}"),
            Error::ForeignObject { what } => {
                write!(f, "this {what} belongs to another backend or device")
            }
            Error::NotWhileCapturing { what } => {
                write!(f, "not possible while a graph is captured: {what}")
            }
            Error::Peer { rank } => write!(f, "rank {rank} failed or did not answer in time"),
            Error::Driver { call, code, meaning } => {
                write!(f, "driver call {call} failed with code {code}: {meaning}")
            }
            Error::DeviceLost { last_op } => {
                write!(f, "the device is lost (last operator: {last_op}); reopen it")
            }
            Error::Unverified { row, board } => {
                write!(f, "kernel row {row} is not proven on {board}; run conformance there first")
            }
            Error::NoDevice { name, reason } => write!(f, "no device {name}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
