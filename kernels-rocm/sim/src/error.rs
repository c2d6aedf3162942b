//! What can be wrong before anything runs.

/// Why a code object cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no code object that we know.
    #[error("not a code object for gfx942 or gfx950: {0}")]
    Object(String),
    /// No disassembler was found.
    #[error(
        "no llvm-objdump of LLVM 20 or later is on the path: install llvm-22 (or later), or name one in TANDEM_LLVM_OBJDUMP"
    )]
    NoDisassembler,
    /// The disassembler failed.
    #[error("{program} failed: {reason}")]
    Disassembler {
        /// The program that was run.
        program: String,
        /// What it said.
        reason: String,
    },
    /// An instruction, operand or modifier that the simulator has no meaning for.
    #[error("{kernel}+{offset:#x}: `{text}`: {reason}")]
    Instruction {
        /// The function it stands in.
        kernel: String,
        /// Where it stands, in bytes from the function's begin.
        offset: u64,
        /// The instruction as the disassembler prints it.
        text: String,
        /// What is not understood.
        reason: String,
    },
    /// A kernel asks for something that is not modelled.
    #[error("kernel {kernel}: {reason}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What it asks for.
        reason: String,
    },
}

/// Why a launch cannot begin, or how it ended badly.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The module has no kernel of that name.
    #[error("the module has no kernel `{0}`")]
    NoKernel(String),
    /// The launch does not suit the kernel.
    #[error("kernel {kernel}: {reason}")]
    Unfit {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// The kernel did something wrong.
    #[error(transparent)]
    Fault(#[from] Box<crate::Fault>),
}
