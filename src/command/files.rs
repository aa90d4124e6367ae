//! Writing new files, some of them secret.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use super::Failure;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// Whoever the system lets by default.
    Anyone,
    /// The owner of the file alone.
    Owner,
}

/// Writes a file that must not be there yet: a key that is overwritten is lost.
pub(super) fn write_new(path: &Path, text: &str, readers: Readers) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Refuses if one of the files is there: either all of them are written or none.
pub(super) fn refuse_existing(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), Failure> {
    for path in paths {
        let path = path.as_ref();
        // A link that leads nowhere is in the way too.
        if path.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!(
                "{}: is there already; nothing is overwritten",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Makes a folder and those above it, if they are not there.
pub(super) fn make_folder(path: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(path);
    made.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path);
    text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}
