//! The C functions of librados, found at run time: a program that never opens shared storage needs no Ceph on its machine.
//!
//! Hard part: the signatures below are those of `librados.h`, which the library's name `librados.so.2` fixes; nothing else checks them (OS-8).

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::sync::OnceLock;

/// A cluster, an I/O context, or a write operation.
pub type Handle = *mut c_void;

/// The name of the library that is looked for.
const LIBRARY: &str = "librados.so.2";

macro_rules! functions {
    ($( fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?; )*) => {
        /// The functions that are used here.
        pub struct Librados {
            $( pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?, )*
        }

        impl Librados {
            fn load() -> Result<Librados, String> {
                // SAFETY: OS-8: the name ends with a zero byte. The library's initialisers are those of Ceph; it is never unloaded.
                let library = unsafe { libc::dlopen(c"librados.so.2".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
                if library.is_null() {
                    return Err(format!(
                        "shared storage needs the library {LIBRARY}, which cannot be loaded: {}; install Ceph's client (Debian: librados2)",
                        last_error()
                    ));
                }
                Ok(Librados {
                    $( $name: {
                        let symbol = concat!(stringify!($name), "\0");
                        // SAFETY: OS-8: `library` is open, and the name ends with a zero byte.
                        let address = unsafe { libc::dlsym(library, symbol.as_ptr().cast()) };
                        if address.is_null() {
                            return Err(format!("{LIBRARY} has no function {}: it is too old", stringify!($name)));
                        }
                        // SAFETY: OS-8: the symbol is the function of that name, which has this signature in every librados.so.2.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(address) }
                    }, )*
                })
            }
        }
    };
}

functions! {
    fn rados_create2(cluster: *mut Handle, cluster_name: *const c_char, user: *const c_char, flags: u64) -> c_int;
    fn rados_conf_read_file(cluster: Handle, path: *const c_char) -> c_int;
    fn rados_conf_set(cluster: Handle, option: *const c_char, value: *const c_char) -> c_int;
    fn rados_connect(cluster: Handle) -> c_int;
    fn rados_shutdown(cluster: Handle);
    fn rados_ioctx_create(cluster: Handle, pool: *const c_char, context: *mut Handle) -> c_int;
    fn rados_ioctx_destroy(context: Handle);
    fn rados_ioctx_set_namespace(context: Handle, namespace: *const c_char);
    fn rados_read(context: Handle, object: *const c_char, buf: *mut c_char, len: usize, offset: u64) -> c_int;
    fn rados_aio_create_completion2(argument: *mut c_void, callback: *const c_void, completion: *mut Handle) -> c_int;
    fn rados_aio_read(context: Handle, object: *const c_char, completion: Handle, buf: *mut c_char, len: usize, offset: u64) -> c_int;
    fn rados_aio_wait_for_complete(completion: Handle) -> c_int;
    fn rados_aio_get_return_value(completion: Handle) -> c_int;
    fn rados_aio_release(completion: Handle);
    fn rados_remove(context: Handle, object: *const c_char) -> c_int;
    fn rados_create_write_op() -> Handle;
    fn rados_release_write_op(operation: Handle);
    fn rados_write_op_create(operation: Handle, exclusive: c_int, category: *const c_char);
    fn rados_write_op_assert_exists(operation: Handle);
    fn rados_write_op_cmpxattr(operation: Handle, name: *const c_char, comparison: u8, value: *const c_char, len: usize);
    fn rados_write_op_setxattr(operation: Handle, name: *const c_char, value: *const c_char, len: usize);
    fn rados_write_op_write(operation: Handle, bytes: *const c_char, len: usize, offset: u64);
    fn rados_write_op_operate2(operation: Handle, context: Handle, object: *const c_char, time: *mut c_void, flags: c_int) -> c_int;
}

fn last_error() -> String {
    // SAFETY: OS-8: dlerror returns null or a string of this thread that lives until the next call of its family.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// Returns the library, which is loaded by the first call.
pub fn librados() -> io::Result<&'static Librados> {
    static LOADED: OnceLock<Result<Librados, String>> = OnceLock::new();
    LOADED.get_or_init(Librados::load).as_ref().map_err(|what| io::Error::new(io::ErrorKind::Unsupported, what.clone()))
}
