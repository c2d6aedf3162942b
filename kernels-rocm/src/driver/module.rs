//! Loaded kernels.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use tandem_portable::Argument;

use super::bindings::{hipFunction_t, hipModule_t};
use super::{Context, Failure, Result};
use crate::{CodeObject, Entry, arguments};

/// A code object on a board.
#[derive(Debug)]
pub struct Module {
    context: Arc<Context>,
    raw: hipModule_t,
    functions: Vec<Function>,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing changes them after they are loaded.
unsafe impl Sync for Module {}

/// One kernel of a module.
#[derive(Debug)]
pub struct Function {
    entry: &'static Entry,
    raw: hipFunction_t,
}

impl Module {
    /// Loads a code object and looks up all its kernels.
    ///
    /// # Errors
    /// What the driver says, such as an object for another target.
    pub fn load(context: &Arc<Context>, object: &CodeObject) -> Result<Module> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        let load = context.hip().hipModuleLoadData;
        // SAFETY: a whole object as the compiler wrote it, as the crate's tests hold against its digest;
        // the driver copies what it keeps, and writes one handle.
        let code = unsafe { load(&mut raw, object.bytes.as_ptr().cast()) };
        context.check("hipModuleLoadData", code)?;
        // From here on it is unloaded whatever comes.
        let mut module = Module { context: context.clone(), raw, functions: vec![] };
        for entry in object.entries {
            let function = module.look_up(entry)?;
            module.functions.push(function);
        }
        Ok(module)
    }

    fn look_up(&self, entry: &'static Entry) -> Result<Function> {
        let zero = |_| Failure::refused("hipModuleGetFunction", "a name with a zero byte".into());
        let symbol = CString::new(entry.name).map_err(zero)?;
        let mut raw = ptr::null_mut();
        let get = self.context.hip().hipModuleGetFunction;
        // SAFETY: the module is loaded; writes one handle.
        let code = unsafe { get(&mut raw, self.raw, symbol.as_ptr()) };
        self.context.check("hipModuleGetFunction", code)?;
        Ok(Function { entry, raw })
    }

    /// A kernel by name.
    ///
    /// # Errors
    /// When the object has none of that name.
    pub fn function(&self, name: &str) -> Result<&Function> {
        let found = self.functions.iter().find(|f| f.entry.name == name);
        found.ok_or_else(|| Failure::refused("hipModuleGetFunction", format!("no kernel {name}")))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.quiesce();
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours, and nothing in flight runs its kernels. Graphs hold the
            // module of what they recorded.
            let _at_the_end = unsafe { (self.context.hip().hipModuleUnload)(self.raw) };
        }
    }
}

impl Function {
    pub(super) fn raw(&self) -> hipFunction_t {
        self.raw
    }

    /// The arguments where the kernel reads them, for a launch that it can take.
    ///
    /// # Errors
    /// When their number or sizes are not those of its parameters, or a block has too many threads.
    pub(super) fn packed(&self, threads: u32, arguments: &[Argument<'_>]) -> Result<Vec<u8>> {
        let Entry { name, threads: most, .. } = self.entry;
        let refused = |why| Failure::refused("hipModuleLaunchKernel", why);
        if threads > *most {
            return Err(refused(format!("blocks of {threads} threads, {name} takes {most}")));
        }
        arguments::packed(self.entry, arguments).map_err(|error| refused(error.to_string()))
    }
}
