//! Files that somebody named, opened only where reading them comes to an end.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file, or a pipe that the shell hands over under a number (`<(…)`, `/dev/stdin`). Opening a named
/// pipe would wait for its other end, and opening some devices has effects: these are refused unopened.
///
/// # Errors
/// What the system says, or what it is instead of a file.
pub fn open(path: &Path) -> io::Result<File> {
    let found = std::fs::metadata(path)?;
    if found.file_type().is_fifo() && is_descriptor(path) {
        return File::open(path);
    }
    is_file(&found)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).unwrap_or(0)).open(path)?;
    // The name may mean something else by now.
    is_file(&file.metadata()?)?;
    Ok(file)
}

/// True for a name of a descriptor that this process was started with.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
        || path == Path::new("/dev/stdin")
}

fn is_file(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn only_what_ends_is_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let pipe = scratch.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let socket = scratch.path().join("socket");
        let _held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let says = |path: &Path| open(path).unwrap_err().to_string();
        assert_eq!(says(&pipe), "it is a named pipe, not a file");
        assert_eq!(says(&socket), "it is a socket, not a file");
        assert_eq!(says(Path::new("/dev/null")), "it is a device, not a file");
        assert_eq!(says(scratch.path()), "it is a folder, not a file");
        assert_eq!(open(&scratch.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(scratch.path().join("file"), "text").unwrap();
        let mut text = String::new();
        open(&scratch.path().join("file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn a_pipe_of_the_shell_is_read() {
        use std::io::Write;
        use std::os::fd::AsRawFd;

        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let mut text = String::new();
        open(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd()))).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
