//! Private layouts of the reference device.

use crate::{Tensor, memory::Memory};
use tandem_hal::{Class, Enc, Error, Layout, Result, View};

/// Weights as f32, row-major, then the original codes and scales: what makes the device fast.
pub(crate) const EXPANDED: Layout = Layout::Private(1);
/// The original bytes in reverse order: proof that nobody looks inside a private layout.
pub(crate) const REVERSED: Layout = Layout::Private(2);

/// How a reference device keeps dense and expert weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weights {
    /// Expanded to f32 when packed.
    #[default]
    Expanded,
    /// As the checkpoint has them.
    Plain,
    /// Reversed byte by byte; slow, for tests.
    Scrambled,
}

impl Weights {
    /// Layout and bytes of a weight, or of one part of a stacked one.
    pub(crate) fn layout(self, class: Class, enc: Enc, shape: &[u64]) -> (Layout, u64) {
        let plain = View::reserved_bytes(enc, shape);
        let floats = View::reserved_bytes(Enc::F32, shape);
        match (class, self) {
            (Class::Table, _) | (_, Weights::Plain) => (Layout::Plain, plain),
            (_, Weights::Expanded) => (EXPANDED, floats.saturating_add(plain)),
            (_, Weights::Scrambled) => (REVERSED, plain),
        }
    }
}

/// Codes and scales of a dense tensor, apart.
pub(crate) fn split(enc: Enc, shape: &[u64], bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (codes, scales) = View::size(enc, shape).expect("views have sizes");
    let (codes, scales) = (codes as usize, scales as usize);
    (bytes[..codes].to_vec(), bytes[codes..codes + scales].to_vec())
}

fn raw(view: &View) -> Result<View> {
    view.as_bytes()
}

/// Plain to private.
pub(crate) fn pack(from: &View, to: &View) -> Result<()> {
    check_pair(from, to)?;
    let plain = read(from)?;
    let bytes = match to.layout() {
        EXPANDED => {
            let (codes, scales) = split(from.enc(), from.shape(), &plain);
            let tensor = Tensor::dense(from.enc(), from.shape(), &codes, &scales);
            let floats = View::reserved_bytes(Enc::F32, from.shape()) as usize;
            let mut bytes = Vec::with_capacity(floats + plain.len());
            for r in 0..tensor.rows() {
                bytes.extend(tensor.row(r).iter().flat_map(|v| v.to_le_bytes()));
            }
            bytes.resize(floats, 0);
            bytes.extend(plain);
            bytes
        }
        REVERSED => plain.into_iter().rev().collect(),
        _ => plain,
    };
    write(&raw(to)?, &bytes)
}

/// Private to plain.
pub(crate) fn unpack(from: &View, to: &View) -> Result<()> {
    check_pair(to, from)?;
    let length = to.bytes() as usize;
    let packed = read(&raw(from)?)?;
    let plain: Vec<u8> = match from.layout() {
        EXPANDED => {
            let floats = View::reserved_bytes(Enc::F32, from.shape()) as usize;
            packed[floats..floats + length].to_vec()
        }
        REVERSED => packed[..length].iter().rev().copied().collect(),
        _ => packed[..length].to_vec(),
    };
    write(to, &plain)
}

fn check_pair(plain: &View, private: &View) -> Result<()> {
    let same = plain.enc() == private.enc() && plain.shape() == private.shape();
    let known = matches!(private.layout(), Layout::Plain | EXPANDED | REVERSED);
    if same && known && plain.layout() == Layout::Plain {
        return Ok(());
    }
    Err(Error::ForeignObject { what: "layout" })
}

/// Copy out a dense view, codes then scales.
pub(crate) fn read(view: &View) -> Result<Vec<u8>> {
    let memory = Memory::of(view)?.read();
    let [codes, scales] = view.spans().map(|s| &memory.bytes()[s.start as usize..s.end as usize]);
    Ok([codes, scales].concat())
}

/// Copy into a dense view; shorter input leaves the rest as it is.
pub(crate) fn write(view: &View, bytes: &[u8]) -> Result<()> {
    let mut memory = Memory::of(view)?.write();
    let [codes, scales] = view.spans();
    let (head, tail) = bytes.split_at(bytes.len().min((codes.end - codes.start) as usize));
    memory.bytes()[codes.start as usize..][..head.len()].copy_from_slice(head);
    memory.bytes()[scales.start as usize..][..tail.len()].copy_from_slice(tail);
    Ok(())
}
