//! What becomes of a driver's refusals and of faults: by a driver that fails where it is told to.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tandem_hal::{
    Device, Enc, Error, Extents, Options, Place, Plan, Real, Result, RmsNorm, RmsNormIo, Stream,
    Sym, View, Want,
};
use tandem_portable::Argument;
use tempfile::TempDir;

use crate::code_object;
use crate::device::RocmDevice;
use crate::driver::{Board, Context, Driver, Module, Queue};
use crate::group::Member;
use crate::model::info;

const TOKENS: u64 = 2;
const RMS: RmsNorm = RmsNorm { width: 32, eps: Real::new(1e-20) };

/// One copy of the driver, with its own orders.
pub(crate) struct Faulty {
    pub(crate) driver: Driver,
    loaded: libloading::Library,
    _folder: TempDir,
}

impl Faulty {
    /// None without a compiler.
    pub(crate) fn new() -> Option<Faulty> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/faulty.cpp");
        let to = folder.path().join("libamdhip64.so");
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++20", "-shared", "-fPIC", "-o"]).arg(&to).arg(source);
        match compiler.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                println!("SKIPPED rocm: no C++ compiler: {error}");
                return None;
            }
        }
        // SAFETY: compiled just now, without initialisers.
        let loaded = unsafe { libloading::Library::new(&to) }.unwrap();
        Some(Faulty { driver: Driver::at(&to), loaded, _folder: folder })
    }

    /// Every call of that name answers `code` from now on, and no other does.
    pub(crate) fn answer(&self, call: &str, code: i32) {
        type Answer = unsafe extern "C" fn(*const c_char, i32);
        let name = CString::new(call).unwrap();
        // SAFETY: the source gives it this type, and copies the name.
        unsafe { (self.loaded.get::<Answer>(b"faulty_answer").unwrap())(name.as_ptr(), code) };
    }

    fn launches(&self) -> i32 {
        type Launches = unsafe extern "C" fn() -> i32;
        // SAFETY: the source gives it this type.
        unsafe { (self.loaded.get::<Launches>(b"faulty_launches").unwrap())() }
    }

    fn contexts(&self) -> Vec<Arc<Context>> {
        let boards = Board::all(self.driver).unwrap();
        boards.into_iter().map(|board| Context::open(board).unwrap()).collect()
    }

    fn device(&self) -> Arc<dyn Device> {
        let facts = info("rocm:0".into(), "AMD Instinct MI300X".into(), "gfx942", 1 << 20);
        let context = self.contexts().remove(0);
        Arc::new(RocmDevice::open(context, facts, &Options::default(), None).unwrap())
    }
}

/// A norm on a device.
struct Norm {
    plan: Plan<RmsNorm>,
    views: [View; 3],
    none: View,
}

impl Norm {
    fn on(device: &dyn Device) -> Norm {
        let want = Want::row_invariant(Extents::of(&[(Sym::Tokens, TOKENS)]));
        let view = |shape: &[u64]| {
            let memory = device.allocate(4096, Place::Device, "operand").unwrap();
            View::dense(&memory, 0, Enc::BF16, shape).unwrap()
        };
        let views = [view(&[TOKENS, 32]), view(&[32]), view(&[TOKENS, 32])];
        let scratch = device.allocate(0, Place::Device, "scratch").unwrap();
        let none = View::dense(&scratch, 0, Enc::U8, &[0]).unwrap();
        Norm { plan: device.plan(RMS, &want).unwrap(), views, none }
    }

    fn launch(&self, on: &dyn Stream) -> Result<()> {
        let [x, weight, y] = &self.views;
        self.plan.launch(on, &self.none, RmsNormIo { x, weight, y })
    }
}

#[test]
fn a_fault_names_the_operator_and_loses_the_device() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let (norm, stream) = (Norm::on(&*device), device.stream().unwrap());
    norm.launch(&*stream).unwrap();
    assert_eq!(faulty.launches(), 1);
    faulty.answer("hipStreamSynchronize", 700);
    let lost = stream.sync().unwrap_err();
    let Error::DeviceLost { last_op } = &lost else { panic!("{lost}") };
    assert!(last_op.starts_with("norm.rms{"), "{last_op}");
    // For ever after, whatever the driver says.
    faulty.answer("", 0);
    let again = [
        stream.sync().unwrap_err(),
        norm.launch(&*stream).unwrap_err(),
        stream.read(&norm.views[2]).unwrap_err(),
        device.allocate(1, Place::Device, "more").unwrap_err(),
        device.stream().map(|_| ()).unwrap_err(),
    ];
    assert!(again.iter().all(|error| *error == lost), "{again:?}");
    assert_eq!(faulty.launches(), 1);
}

#[test]
fn a_fault_of_a_graph_names_its_end() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let (norm, stream) = (Norm::on(&*device), device.stream().unwrap());
    let graph = stream
        .capture(&mut || {
            norm.launch(&*stream)?;
            norm.launch(&*stream)
        })
        .unwrap();
    assert_eq!(graph.nodes(), 2);
    stream.replay(&*graph).unwrap();
    faulty.answer("hipEventSynchronize", 719);
    let lost = stream.mark().unwrap().wait().unwrap_err().to_string();
    assert!(lost.contains("a graph of 2 launches up to norm.rms{"), "{lost}");
}

#[test]
fn refusals_name_the_call_and_lose_nothing() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let (norm, stream) = (Norm::on(&*device), device.stream().unwrap());
    let y = &norm.views[2];
    let bytes = vec![7; y.bytes() as usize];
    type Act<'a> = &'a dyn Fn() -> Result<()>;
    let acts: [(&str, Act<'_>); 9] = [
        ("hipMemcpyAsync", &|| stream.write(y, &bytes)),
        ("hipEventRecord", &|| stream.write(y, &bytes)),
        ("hipMemcpyAsync", &|| stream.read(y).map(|_| ())),
        ("hipStreamSynchronize", &|| stream.read(y).map(|_| ())),
        ("hipHostMalloc", &|| stream.read_later(y).map(|_| ())),
        ("hipMemsetAsync", &|| stream.fill(y, 0)),
        ("hipModuleLaunchKernel", &|| norm.launch(&*stream)),
        ("hipStreamBeginCapture", &|| stream.capture(&mut || Ok(())).map(|_| ())),
        ("hipStreamCreateWithFlags", &|| device.stream().map(|_| ())),
    ];
    for (call, act) in acts {
        faulty.answer(call, 801);
        let error = act().unwrap_err();
        let said = format!("driver call {call} failed with code 801: as told: update ROCm");
        assert!(error.to_string().starts_with(&said), "{error}");
        faulty.answer("", 0);
        act().unwrap();
    }
    stream.write(y, &bytes).unwrap();
    assert_eq!(stream.read(y).unwrap(), bytes);
}

#[test]
fn steps_allocate_and_load_nothing_after_the_first() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let (norm, stream) = (Norm::on(&*device), device.stream().unwrap());
    let [x, _, y] = &norm.views;
    let bytes = vec![7; x.bytes() as usize];
    let step = || -> Result<Vec<u8>> {
        stream.write(x, &bytes)?;
        norm.launch(&*stream)?;
        stream.read_later(y)?.wait()
    };
    step().unwrap();
    for call in ["hipMalloc", "hipHostMalloc", "hipModuleLoadData", "hipModuleGetFunction"] {
        faulty.answer(call, 2);
        step().unwrap();
    }
}

#[test]
fn memory_that_runs_out_is_told_with_its_purpose() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let wanted = |bytes, place| device.allocate(bytes, place, "pages").unwrap_err();
    let purpose = || "pages".to_owned();
    // By the ledger, then by the driver, whose memory others hold.
    let all = Error::OutOfMemory { wanted: 2 << 20, free: 1 << 20, purpose: purpose() };
    assert_eq!(wanted(2 << 20, Place::Device), all);
    faulty.answer("hipMalloc", 2);
    let others = Error::OutOfMemory { wanted: 4096, free: 77, purpose: purpose() };
    assert_eq!(wanted(4096, Place::Device), others);
    faulty.answer("hipHostMalloc", 2);
    let host = Error::OutOfMemory { wanted: 4096, free: 0, purpose: purpose() };
    assert_eq!(wanted(4096, Place::Pinned), host);
    assert!(device.ledger().is_empty());
}

#[test]
fn files_that_cannot_be_registered_are_read_by_position() {
    let Some(faulty) = Faulty::new() else { return };
    let device = faulty.device();
    let file = tempfile::tempfile().unwrap();
    file.set_len(100_000).unwrap();
    let map = |offset, bytes| device.map(&file, offset, bytes, "weights");
    let mapped = map(70_000, 30_000).unwrap();
    assert_eq!((mapped.place, mapped.bytes), (Place::Mapped, 30_000));
    drop(mapped);
    assert!(map(70_000, 30_001).is_err() && map(0, 0).is_err());
    faulty.answer("hipHostRegister", 304);
    let error = map(0, 100_000).unwrap_err().to_string();
    assert!(error.contains("hipHostRegister failed with code 304"), "{error}");
    assert!(error.ends_with("read weights by position"), "{error}");
    assert!(device.ledger().is_empty());
}

#[test]
fn boards_that_are_not_linked_are_no_group() {
    let Some(faulty) = Faulty::new() else { return };
    let contexts = faulty.contexts();
    let members = Member::all(&contexts).unwrap();
    assert_eq!(members[1].peers().ranks(), 2);
    // Boards that reach each other already do so still.
    faulty.answer("hipDeviceEnablePeerAccess", 704);
    assert!(Member::all(&contexts).is_ok());
    faulty.answer("no link", 0);
    let error = Member::all(&contexts).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("boards 0 and 1 are not linked; open others"), "{error}");
}

#[test]
fn launches_that_a_kernel_does_not_take_reach_no_board() {
    let Some(faulty) = Faulty::new() else { return };
    let context = faulty.contexts().remove(0);
    let object = code_object::find("norm/rms", "gfx942").unwrap();
    let module = Module::load(&context, object).unwrap();
    assert!(module.function("norm_rms__none").unwrap_err().to_string().contains("no kernel"));
    let (function, queue) = (module.function("norm_rms__portable").unwrap(), Queue::new(&context));
    let queue = queue.unwrap();
    for (threads, arguments, said) in [
        (2048, &[][..], "blocks of 2048 threads, norm_rms__portable takes 1024"),
        (64, &[Argument::U64(0)][..], "arguments of [8] bytes"),
    ] {
        // SAFETY: the driver runs nothing, and the launch is refused before it.
        let refused = unsafe { queue.launch(function, 1, threads, arguments) };
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    assert_eq!(faulty.launches(), 0);
    faulty.answer("hipModuleLoadData", 209);
    let error = Module::load(&context, object).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("209: as told: the kernels of this build are for gfx942"), "{error}");
}
