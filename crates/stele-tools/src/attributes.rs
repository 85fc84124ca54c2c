//! Extended attributes (`xattr(7)`), access control lists among them (`acl(5)`), from one file to another.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr};
use rustix::io::Result;

/// The access control list of a file.
const ACCESS: &str = "system.posix_acl_access";
/// What the system itself gives to a file (labels), or takes from it when it is written (capabilities, signatures).
const OF_THE_SYSTEM: &str = "security.";
/// Bytes of all names, and of one value, that are copied; the most there are on Linux.
const MOST: usize = 64 * 1024;

/// Gives `new` what `old` has, and takes from it what only its folder gave it. False when something would be lost.
pub(crate) fn copy(old: &Path, new: &File) -> bool {
    let names = names(|buffer| listxattr(old, buffer));
    for name in &names {
        let Some(value) = value(|buffer| getxattr(old, name.as_str(), buffer)) else { return false };
        let same = self::value(|buffer| fgetxattr(new, name.as_str(), buffer)).as_ref() == Some(&value);
        let kept = same || fsetxattr(new, name.as_str(), &value, XattrFlags::empty()).is_ok();
        if !kept && !name.starts_with(OF_THE_SYSTEM) {
            return false;
        }
    }
    let inherited = self::names(|buffer| flistxattr(new, buffer));
    !inherited.contains(ACCESS) || names.contains(ACCESS) || fremovexattr(new, ACCESS).is_ok()
}

/// The names; none where the file system has no attributes.
fn names(list: impl Fn(&mut [u8]) -> Result<usize>) -> BTreeSet<String> {
    let mut buffer = vec![0; MOST];
    let length = list(&mut buffer).unwrap_or(0);
    let names = buffer[..length.min(MOST)].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

fn value(get: impl Fn(&mut [u8]) -> Result<usize>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MOST];
    let length = get(&mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}
