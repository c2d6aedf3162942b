//! A kernel's descriptor: the 64 bytes that the hardware's dispatcher reads.

/// What the descriptor says, as far as it bears on execution.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    /// LDS that the kernel declares, in bytes.
    pub(crate) lds_bytes: u32,
    /// Scratch memory of a lane, in bytes.
    pub(crate) private_bytes: u32,
    /// Size of the argument segment, in bytes.
    pub(crate) kernarg_bytes: u32,
    /// Address of the first instruction.
    pub(crate) entry: u64,
    resources_1: u32,
    resources_2: u32,
    properties: u16,
    /// Words of arguments that are put into scalar registers, and the first of them.
    pub(crate) preload: (u16, u16),
}

/// What a user register pair or quad holds when a wave begins, in the order of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserRegisters {
    PrivateBuffer,
    DispatchPacket,
    Queue,
    Kernarg,
    DispatchId,
    FlatScratch,
    PrivateBytes,
}

const USER_REGISTERS: [(UserRegisters, u8); 7] = [
    (UserRegisters::PrivateBuffer, 4),
    (UserRegisters::DispatchPacket, 2),
    (UserRegisters::Queue, 2),
    (UserRegisters::Kernarg, 2),
    (UserRegisters::DispatchId, 2),
    (UserRegisters::FlatScratch, 2),
    (UserRegisters::PrivateBytes, 1),
];

impl Descriptor {
    /// Reads a descriptor that lies at `address`.
    pub(crate) fn read(bytes: &[u8; 64], address: u64) -> Self {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let entry_offset = u64::from(word(16)) | u64::from(word(20)) << 32;
        let preload = word(56) >> 16;
        Self {
            lds_bytes: word(0),
            private_bytes: word(4),
            kernarg_bytes: word(8),
            entry: address.wrapping_add(entry_offset),
            resources_1: word(48),
            resources_2: word(52),
            properties: word(56) as u16,
            preload: ((preload & 0x7f) as u16, (preload >> 7) as u16),
        }
    }

    /// Why the floating-point mode is not the one that is modelled: nearest rounding, subnormals kept.
    pub(crate) fn foreign_mode(&self) -> Option<&'static str> {
        if self.resources_1 >> 12 & 0xf != 0 {
            return Some("it begins with a rounding mode other than to nearest");
        }
        (self.resources_1 >> 16 & 0xf != 0xf).then_some("it begins with subnormals flushed to zero")
    }

    /// User registers that are set, and how many each takes.
    pub(crate) fn user_registers(&self) -> impl Iterator<Item = (UserRegisters, u8)> {
        let enabled = self.properties;
        USER_REGISTERS
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| enabled >> bit & 1 != 0)
            .map(|(_, registers)| registers)
    }

    /// Which of the workgroup's three coordinates a wave gets.
    pub(crate) fn workgroup_ids(&self) -> [bool; 3] {
        [7, 8, 9].map(|bit| self.resources_2 >> bit & 1 != 0)
    }

    /// Whether dynamic stack use is asked for.
    pub(crate) fn uses_dynamic_stack(&self) -> bool {
        self.properties >> 11 & 1 != 0
    }
}
