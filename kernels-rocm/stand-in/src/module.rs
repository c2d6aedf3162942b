//! Code objects and their kernels.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tandem_gfxsim::{CodeObject, LoadError, Resources, Target};

use crate::allocation::Kind;
use crate::code::{Code, Result};
use crate::machine::{State, machine};

/// A code object that is loaded on a board.
#[derive(Clone)]
pub(crate) struct Module {
    pub(crate) board: usize,
    loaded: Arc<tandem_gfxsim::Module>,
}

/// A kernel of one.
#[derive(Clone)]
pub(crate) struct Function {
    module: Module,
    name: Arc<str>,
}

impl Function {
    pub(crate) fn board(&self) -> usize {
        self.module.board
    }

    pub(crate) fn module(&self) -> &tandem_gfxsim::Module {
        &self.module.loaded
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Registers, memory and limits.
    pub(crate) fn resources(&self) -> Result<(Resources, u32)> {
        let object = self.module().object();
        let found = object.resources(&self.name).zip(object.workgroup_size(&self.name));
        found.ok_or(Code::NOT_FOUND)
    }
}

/// Decoding takes its time, and several boards load the same.
static DECODED: Mutex<Option<HashMap<Vec<u8>, Arc<CodeObject>>>> = Mutex::new(None);

/// Decodes a code object for a board of a target.
pub(crate) fn decode(bytes: &[u8], target: Target) -> Result<Arc<CodeObject>> {
    let told = |error: LoadError| {
        machine().tell(&format!("hipModuleLoadData: {error}"));
        match error {
            LoadError::Object(_) => Code::INVALID_IMAGE,
            LoadError::NoDisassembler | LoadError::Disassembler { .. } => Code::INIT_FAILED,
            LoadError::Instruction { .. } | LoadError::Kernel { .. } => Code::NOT_SUPPORTED,
        }
    };
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Code::INVALID_IMAGE);
    }
    // Of another target, as a program finds out which one it has.
    if CodeObject::target_of(bytes).map_or(true, |other| other != target) {
        return Err(Code::NO_BINARY);
    }
    // A map is whole between two statements.
    let mut decoded = DECODED.lock().unwrap_or_else(PoisonError::into_inner);
    let decoded = decoded.get_or_insert_default();
    if let Some(object) = decoded.get(bytes) {
        return Ok(object.clone());
    }
    let object = Arc::new(CodeObject::load(bytes).map_err(told)?);
    decoded.insert(bytes.to_vec(), object.clone());
    Ok(object)
}

impl State {
    /// Puts a code object into a board's memory; its handle.
    pub(crate) fn load(&mut self, board: usize, object: &Arc<CodeObject>) -> usize {
        let loaded = self.memory.load(object);
        for base in loaded.segments() {
            let bytes = self.memory.extent(*base).map_or(0, |(_, bytes)| bytes);
            self.allocations.note(*base, Kind::Code, board, bytes);
        }
        self.memory_changed();
        self.modules.insert(Module { board, loaded: Arc::new(loaded) })
    }

    /// A handle of a kernel.
    pub(crate) fn function(&mut self, module: usize, name: &str) -> Result<usize> {
        let module = self.modules.get(module)?.clone();
        if !module.loaded.object().kernels().any(|known| known == name) {
            return Err(Code::NOT_FOUND);
        }
        Ok(self.functions.insert(Function { module, name: name.into() }))
    }

    /// Address and bytes of a device variable.
    pub(crate) fn global(&self, module: usize, name: &str) -> Result<(u64, u64)> {
        let found = self.modules.get(module)?.loaded.symbol(name);
        found.filter(|(address, _)| self.memory.extent(*address).is_some()).ok_or(Code::NOT_FOUND)
    }

    /// Takes a code object away, and its functions' handles.
    pub(crate) fn unload(&mut self, handle: usize) -> Result<()> {
        let module = self.modules.remove(handle)?;
        self.functions.retain(|function| !Arc::ptr_eq(&function.module.loaded, &module.loaded));
        for base in module.loaded.segments().to_vec() {
            self.remove_region(base);
        }
        Ok(())
    }
}
