//! The machine code of every embedded image: what must be in it and what must not.
//!
//! A kernel source says what it is made for, beside the code: a line `// SASS: UTMALDG HGMMA` names
//! instructions that every image of it has. No image has loads or stores of local memory.

mod elf;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};
use tandem_cuda::{Image, image};

/// Loads and stores of local memory: spills, or arrays that are not in registers.
const LOCAL: [&str; 2] = ["LDL", "STL"];

/// The disassemblers, or why there are none.
fn tools() -> Result<PathBuf, String> {
    if let Some(why) = image::absent() {
        return Err(why.into());
    }
    let toolkit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cuda-toolkit/nvidia/cu13/bin");
    match ["nvdisasm", "cuobjdump"].iter().find(|tool| !toolkit.join(tool).is_file()) {
        None => Ok(toolkit),
        Some(tool) => Err(format!("no {tool}: run 'cargo xtask toolkit cuda'")),
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?} does not run: {why}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("disassemblies are text")
}

/// One kernel's instructions, with their modifiers and without operands.
struct Code {
    image: &'static Image,
    kernel: String,
    opcodes: BTreeSet<String>,
}

/// Every kernel of every image for a target. The kernels go through one process, one after the other:
/// a disassembler takes longer to start than to read them all.
fn disassemble(tools: &Path, target: &str) -> Vec<Code> {
    let (mut kernels, mut bytes) = (vec![], vec![]);
    for image in image::all().iter().filter(|image| image.target == target) {
        let file = image.unpack().expect("images are whole");
        for (section, code) in elf::sections(&file) {
            if let Some(kernel) = section.strip_prefix(".text.") {
                bytes.extend_from_slice(code);
                kernels.push((image, kernel.to_string(), bytes.len() as u64));
            }
        }
    }
    let file = tempfile::NamedTempFile::new().expect("room for a temporary file");
    fs::write(file.path(), bytes).expect("room for a temporary file");
    let raw = target.replace("sm_", "SM");
    let mut command = Command::new(tools.join("nvdisasm"));
    let text = output(command.args(["--no-dataflow", "--binary", &raw]).arg(file.path()));
    let mut codes: Vec<Code> = vec![];
    let mut instructions = text.lines().filter_map(instruction).peekable();
    for (image, kernel, end) in kernels {
        let mut opcodes = BTreeSet::new();
        while let Some((_, opcode)) = instructions.next_if(|(at, _)| *at < end) {
            opcodes.insert(opcode.to_string());
        }
        codes.push(Code { image, kernel, opcodes });
    }
    assert!(instructions.next().is_none(), "instructions behind the last kernel");
    codes
}

/// The address and the opcode of a line `/*0a40*/ @!P0 LDL.64 R2, [R1] ;`.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let mut words = rest.split_whitespace().filter(|word| !word.starts_with(['@', '{']));
    Some((address, words.next()?.trim_end_matches(';')))
}

/// Whether a kernel has an instruction, with these modifiers or more.
fn has(opcodes: &BTreeSet<String>, wanted: &str) -> bool {
    opcodes
        .iter()
        .any(|o| o.strip_prefix(wanted).is_some_and(|m| m.is_empty() || m.starts_with('.')))
}

/// What is wrong with a kernel's code.
fn local_memory(opcodes: &BTreeSet<String>) -> Vec<&'static str> {
    LOCAL.into_iter().filter(|opcode| has(opcodes, opcode)).collect()
}

/// The instructions that a source says its images have.
fn declared(source: &str) -> Vec<&str> {
    let lines = source.lines().filter_map(|line| line.trim().strip_prefix("// SASS:"));
    lines.flat_map(str::split_whitespace).collect()
}

fn source(image: &Image) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["kernels", "../kernels-portable/kernels"].map(|folder| here.join(folder));
    let mut paths = folders.iter().map(|folder| folder.join(format!("{}.cu", image.name)));
    let path = paths.find(|path| path.is_file()).expect("images have sources");
    fs::read_to_string(path).expect("sources are text")
}

#[test]
fn images_have_the_instructions_they_are_made_for_and_no_local_memory() {
    let tools = match tools() {
        Ok(tools) => tools,
        Err(why) => return println!("SKIPPED cuda: {why}"),
    };
    let targets: BTreeSet<_> = image::all().iter().map(|image| image.target).collect();
    let codes: Vec<Code> = thread::scope(|scope| {
        let tools = &tools;
        let started: Vec<_> =
            targets.iter().map(|target| scope.spawn(move || disassemble(tools, target))).collect();
        started.into_iter().flat_map(|thread| thread.join().expect("its panic is told")).collect()
    });
    let mut wrong = vec![];
    for Code { image, kernel, opcodes } in &codes {
        assert!(opcodes.contains("EXIT"), "{kernel} was not disassembled: {opcodes:?}");
        for opcode in local_memory(opcodes) {
            wrong.push(format!("{} {}: {kernel} has {opcode}", image.name, image.target));
        }
    }
    for image in image::all() {
        let own = codes.iter().filter(|c| std::ptr::eq(c.image, image));
        let own: BTreeSet<String> = own.flat_map(|code| code.opcodes.clone()).collect();
        let (name, source) = (image.name, source(image));
        let declared = declared(&source);
        if name.contains("_sm") && declared.is_empty() {
            wrong.push(format!("{name} is of one architecture: it needs a line '// SASS: ...'"));
        }
        let missing = declared.into_iter().filter(|opcode| !has(&own, opcode));
        wrong.extend(missing.map(|opcode| format!("{name} {}: no {opcode}", image.target)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Registers, stack and local memory of each function in a report of resources.
fn resources(report: &str) -> Vec<(String, [u32; 3])> {
    let mut lines = report.lines().map(str::trim);
    let mut functions = vec![];
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("Function ").and_then(|l| l.strip_suffix(':')) else {
            continue;
        };
        let usage = lines.next().unwrap_or_default();
        let number = |what: &str| {
            let field = usage.split_whitespace().find_map(|word| word.strip_prefix(what));
            field
                .and_then(|n| n.parse().ok())
                .unwrap_or_else(|| panic!("{name}: no {what} in {usage}"))
        };
        functions.push((name.to_string(), ["REG:", "STACK:", "LOCAL:"].map(number)));
    }
    functions.sort();
    functions
}

#[test]
fn kernels_have_the_registers_on_record_and_no_stack() {
    let tools = match tools() {
        Ok(tools) => tools,
        Err(why) => return println!("SKIPPED cuda: {why}"),
    };
    let folder = tempfile::tempdir().expect("room for a temporary folder");
    for image in image::all() {
        let file = folder.path().join("image.cubin");
        fs::write(&file, image.unpack().expect("images are whole")).expect("room for an image");
        let report = output(Command::new(tools.join("cuobjdump")).arg("-res-usage").arg(&file));
        let recorded = image.entries.iter().map(|e| (e.name.to_string(), [e.registers, 0, 0]));
        let recorded: Vec<_> = recorded.collect();
        assert_eq!(resources(&report), recorded, "{} {}", image.name, image.target);
    }
}

#[test]
fn planted_faults_are_seen() {
    let opcodes = |text: &str| -> BTreeSet<String> {
        text.lines().filter_map(instruction).map(|(_, opcode)| opcode.to_string()).collect()
    };
    let sound = opcodes(
        "\t.headerflags\t@\"EF_CUDA_SM90\"\n\
         /*0000*/ LDC R1, c[0x0][0x28] ;\n\
         /*0010*/ @!UP0 UTMALDG.2D [UR8], [UR4], desc[UR6] ;\n\
         /*0020*/ QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24 ;\n\
         /*0030*/ LDS R4, [R2] ;\n\
         /*0040*/ EXIT ;",
    );
    assert_eq!(sound.len(), 5);
    assert_eq!(local_memory(&sound), Vec::<&str>::new());
    let spilled = opcodes("/*0000*/ @P0 LDL.LU.64 R2, [R1+0x8] ;\n/*0010*/ STL [R1], R2 ;");
    assert_eq!(local_memory(&spilled), LOCAL);
    for wanted in ["UTMALDG", "UTMALDG.2D", "QGMMA", "QGMMA.64x64x32", "EXIT"] {
        assert!(has(&sound, wanted), "{wanted}");
    }
    for wanted in ["HGMMA", "UTMALDG.3D", "QGMM", "LD"] {
        assert!(!has(&sound, wanted), "{wanted}");
    }
    let source = "// Tiles.\n//\n// SASS: QGMMA UTMALDG.2D\n#include \"x\"\n// SASS: SYNCS\n";
    assert_eq!(declared(source), ["QGMMA", "UTMALDG.2D", "SYNCS"]);
    let report = "Resource usage:\n Function b:\n  REG:32 STACK:16 SHARED:0 LOCAL:8\n Function a:\n  \
                  REG:9 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:848\n";
    assert_eq!(resources(report), [("a".into(), [9, 0, 0]), ("b".into(), [32, 16, 8])]);
}
