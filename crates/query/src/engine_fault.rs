//! The engine's errors as faults. Neither crate knows the other's type, so no `From` can lead from one to the other: `map_err(engine_fault)` does.

use datum::Fault;

/// Classifies an error of the engine by what a statement's client can do about it.
#[cold]
pub fn engine_fault(error: engine::Error) -> Fault {
    use engine::Error;
    match error {
        Error::WouldBlock => Fault::Suspended,
        Error::LockTimeout => Fault::LockTimeout,
        Error::Cancelled => Fault::Interrupted,
        Error::LockNotAvailable => Fault::LockNotAvailable { table: None },
        Error::Deadlock => Fault::Deadlock,
        Error::SerializationFailure { is_deleted } => Fault::SerializationFailure { is_deleted },
        Error::ReadWriteDependency => Fault::ReadWriteDependency,
        Error::SnapshotTooOld => Fault::SnapshotTooOld,
        Error::DiskFull => Fault::DiskFull { folder: None },
        Error::Following => Fault::KeysFollow,
        Error::TooManyComputations => Fault::TooManyComputations,
        Error::ShuttingDown => Fault::ShuttingDown,
        Error::TooLarge { limit, .. } => Fault::RowTooLarge { max: limit },
        other => Fault::Storage(other.to_string().into()),
    }
}
