//! `tandem chat` on a real terminal, which the program `script` provides.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A conversation on a terminal of its own.
struct Terminal {
    program: Child,
    keys: ChildStdin,
    screen: ChildStdout,
}

impl Terminal {
    /// Begins one; `None` where no program can provide a terminal.
    fn chat(arguments: &str) -> Option<Self> {
        // In place of the shell, which otherwise may take Ctrl-C for itself as well and end with 130.
        let command = format!("exec {} chat {arguments}", env!("CARGO_BIN_EXE_tandem"));
        let program = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut program = program.ok()?;
        let (keys, screen) = (program.stdin.take()?, program.stdout.take()?);
        Some(Self { program, keys, screen })
    }

    /// Presses keys.
    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Reads until `text` has appeared.
    fn until(&mut self, text: &str) {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(text.as_bytes()) {
            let came = self.screen.read(&mut byte).expect("the terminal shows something");
            assert_eq!(came, 1, "{text:?} in {}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }
}

#[test]
fn keys_do_what_they_do_on_a_terminal() {
    const CTRL_C: &str = "\u{3}";
    const CTRL_D: &str = "\u{4}";
    const CTRL_U: &str = "\u{15}";
    const UP: &str = "\u{1b}[A";
    let Some(mut chat) = Terminal::chat("--temp 0 -n 60000") else {
        println!("SKIPPED: there is no program 'script' to provide a terminal");
        return;
    };
    chat.until("demo; /help lists commands, Ctrl-D ends\r\n");
    chat.until("> ");
    for message in ["Who are you?", "Wër bist dü? 你好 🐳"] {
        chat.press(message);
        chat.until(message.split(' ').next_back().unwrap());
        chat.press("\r");
        chat.until("\n");
        // A letter of the answer.
        chat.until("e");
        chat.press(CTRL_C);
        chat.until("\r\n[stopped]\r\n");
        chat.until("> ");
    }
    chat.press(UP);
    chat.until("🐳");
    chat.press(UP);
    chat.until("Who are you?");
    // At the prompt it takes back what was typed.
    chat.press(CTRL_C);
    chat.until("\n");
    chat.press("/help\r");
    chat.until("Ctrl-C       stop an answer\r\n");
    chat.until("> ");
    chat.press("/image /no/such.png\r");
    chat.until("/no/such.png: No such file or directory (os error 2); check the path\r\n");
    chat.until("> ");
    chat.press("/image\r");
    chat.until("error: /image lacks its file; say /image FILE, a PNG or JPEG\r\n");
    chat.until("> ");
    chat.press("/image /dev/zero\r");
    chat.until("error: /dev/zero: not a regular file; give a PNG or JPEG file\r\n");
    chat.until("> ");
    chat.press("/image /proc/self/mem\r");
    chat.until("; give another file\r\n");
    chat.until("> ");
    chat.press("left over");
    chat.until("left over");
    chat.press(CTRL_U);
    chat.press(CTRL_D);
    assert_eq!(chat.program.wait().unwrap().code(), Some(0));
}
