//! Loaded kernels.

use super::{Argument, Context, Failure, Result, failure::check};
use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as Attribute, CUmodule, CUresult,
};
use std::{ffi::CString, ptr, sync::Arc};

/// An image on a board.
#[derive(Debug)]
pub struct Module {
    context: Arc<Context>,
    raw: CUmodule,
    functions: Vec<Function>,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing changes them after they are loaded.
unsafe impl Sync for Module {}

/// One kernel of a module.
#[derive(Debug)]
pub struct Function {
    name: String,
    raw: CUfunction,
    /// Bytes of each parameter.
    parameters: Vec<usize>,
}

impl Module {
    /// Loads an image and looks up the kernels named.
    ///
    /// # Errors
    /// What the driver says, such as an image for another architecture.
    ///
    /// # Safety
    /// `image` must be a whole image as the compiler wrote it: the driver follows its headers.
    pub unsafe fn load(context: &Arc<Context>, image: &[u8], kernels: &[&str]) -> Result<Module> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the caller's promise; the driver copies what it keeps.
        let code = unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) };
        check("cuModuleLoadData", code)?;
        // From here on it is unloaded whatever comes.
        let mut module = Module { context: context.clone(), raw, functions: vec![] };
        let optional = context.board().shared_memory_bytes()?;
        for name in kernels {
            let function = Function::of(raw, name, optional)?;
            module.functions.push(function);
        }
        Ok(module)
    }

    /// A kernel by name.
    ///
    /// # Errors
    /// When it was not among those looked up.
    pub fn function(&self, name: &str) -> Result<&Function> {
        let found = self.functions.iter().find(|f| f.name == name);
        found.ok_or_else(|| Failure::refused("cuModuleGetFunction", format!("no kernel {name}")))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.quiesce();
        if self.context.bind().is_ok() {
            // SAFETY: the handle is ours, and nothing in flight runs its kernels. Graphs hold the
            // module of what they recorded.
            let _at_the_end = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

impl Function {
    fn of(module: CUmodule, name: &str, shared_memory_bytes: u64) -> Result<Function> {
        let zero = |_| Failure::refused("cuModuleGetFunction", "a name with a zero byte".into());
        let symbol = CString::new(name).map_err(zero)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the module is loaded; writes one handle.
        let code = unsafe { sys::cuModuleGetFunction(&mut raw, module, symbol.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        let function = Function { name: name.into(), raw, parameters: parameters(raw)? };
        let fixed = function.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        // Launches may then ask for all there is, and for clusters of more than eight blocks.
        let most = shared_memory_bytes as i32 - fixed;
        function.allow(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most)?;
        function.allow(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        Ok(function)
    }

    fn attribute(&self, attribute: Attribute) -> Result<i32> {
        let mut value = 0;
        // SAFETY: the module is loaded; writes one integer.
        let code = unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.raw) };
        check("cuFuncGetAttribute", code)?;
        Ok(value)
    }

    fn allow(&self, attribute: Attribute, value: i32) -> Result<()> {
        // SAFETY: the module is loaded.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.raw, attribute, value) })
    }

    pub(super) fn raw(&self) -> CUfunction {
        self.raw
    }

    /// Whether arguments have the count and sizes of the parameters.
    pub(super) fn require(&self, arguments: &[Argument<'_>]) -> Result<()> {
        let given: Vec<usize> = arguments.iter().map(|a| a.place().1).collect();
        if given == self.parameters {
            return Ok(());
        }
        let (name, taken) = (&self.name, &self.parameters);
        let why = format!("arguments of {given:?} bytes, {name} takes {taken:?}");
        Err(Failure::refused("cuLaunchKernelEx", why))
    }
}

/// Bytes of each parameter of a kernel.
fn parameters(function: CUfunction) -> Result<Vec<usize>> {
    let mut sizes = vec![];
    loop {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the module is loaded; writes two sizes. One past the last is an error code.
        let code =
            unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut bytes) };
        if code == CUresult::CUDA_ERROR_INVALID_VALUE {
            return Ok(sizes);
        }
        check("cuFuncGetParamInfo", code)?;
        sizes.push(bytes);
    }
}
