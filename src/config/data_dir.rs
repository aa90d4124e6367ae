//! A node's folder: its name, if it was made up, and the last generation it had.
//!
//! Invariants: one process at a time holds a data folder; a file in it is the old one or the new one,
//! never half of either, whenever the machine stops.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use thiserror::Error;
use tollgate_limit::NodeId;

/// The folder that a node keeps its files in, held until dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// A data folder that cannot be used. The operator's fault; nothing was started.
#[derive(Debug, Error)]
pub enum DataDirError {
    /// The system refuses.
    #[error("data folder {}: {step} failed: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has it.
    #[error("data folder {}: another node is running on it", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A file in it does not hold what it should.
    #[error("{}: {wrong}; remove the file if the node may start anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        wrong: &'static str,
    },
}

const LOCK: &str = "lock";
const NODE_ID: &str = "node_id";
const GENERATION: &str = "generation";

impl DataDir {
    /// Makes the folder if it is not there, and takes it.
    ///
    /// # Errors
    /// [`DataDirError`]; the folder may have been made.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        fs::create_dir_all(path).map_err(|error| failed(path, "making it", error))?;
        let file = path.join(LOCK);
        let lock = File::create(&file).map_err(|error| failed(&file, "opening it", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(failed(&file, "locking it", error)),
        }
    }

    /// Whether a process holds the folder; one that is not there is not held.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        let held = |lock: File| matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        File::open(path.join(LOCK)).is_ok_and(held)
    }

    /// The name that was made for the node; made from `random` the first time.
    ///
    /// # Errors
    /// [`DataDirError`]; no name was made.
    pub fn node_id(&self, random: u64) -> Result<NodeId, DataDirError> {
        let damaged = || DataDirError::Damaged {
            path: self.path.join(NODE_ID),
            wrong: "does not hold a node id",
        };
        if let Some(text) = self.read(NODE_ID)? {
            return NodeId::new(text.trim()).ok_or_else(damaged);
        }
        let name = NodeId::new(&format!("node-{random:016x}")).ok_or_else(damaged)?;
        self.write(NODE_ID, name.as_str())?;
        Ok(name)
    }

    /// The largest generation that the node is known to have had; 0 if none is known.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn last_generation(&self) -> Result<u64, DataDirError> {
        let Some(text) = self.read(GENERATION)? else {
            return Ok(0);
        };
        text.trim().parse().map_err(|_error| DataDirError::Damaged {
            path: self.path.join(GENERATION),
            wrong: "does not hold a number",
        })
    }

    /// Keeps the largest generation that the node has had.
    ///
    /// # Errors
    /// [`DataDirError`]; the old one stands.
    pub fn keep_generation(&self, generation: u64) -> Result<(), DataDirError> {
        self.write(GENERATION, &generation.to_string())
    }

    fn read(&self, name: &str) -> Result<Option<String>, DataDirError> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, "reading it", error)),
        }
    }

    /// Writes beside the file, then renames: the rename is atomic.
    fn write(&self, name: &str, text: &str) -> Result<(), DataDirError> {
        let path = self.path.join(name);
        let beside = self.path.join(format!("{name}.new"));
        let write = || -> io::Result<()> {
            let mut file = File::create(&beside)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| failed(&path, "writing it", error))
    }
}

fn failed(path: &Path, step: &'static str, source: io::Error) -> DataDirError {
    DataDirError::Io {
        path: path.to_owned(),
        step,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::{DataDir, DataDirError};

    #[test]
    fn a_made_name_and_a_generation_stay() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        assert_eq!(first.last_generation().unwrap(), 0);
        let name = first.node_id(7).unwrap();
        first.keep_generation(41).unwrap();
        first.keep_generation(42).unwrap();
        drop(first);
        let second = DataDir::open(folder.path()).unwrap();
        assert_eq!(second.node_id(8).unwrap(), name);
        assert_eq!(second.last_generation().unwrap(), 42);
    }

    #[test]
    fn one_process_holds_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        let second = DataDir::open(folder.path());
        assert!(matches!(second, Err(DataDirError::InUse { .. })));
        assert!(DataDir::is_held(folder.path()));
        drop(first);
        assert!(!DataDir::is_held(folder.path()));
        assert!(!DataDir::is_held(&folder.path().join("none")));
    }

    #[test]
    fn a_damaged_file_is_told_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("generation"), "many").unwrap();
        let opened = DataDir::open(folder.path()).unwrap();
        assert!(matches!(
            opened.last_generation(),
            Err(DataDirError::Damaged { .. })
        ));
    }
}
