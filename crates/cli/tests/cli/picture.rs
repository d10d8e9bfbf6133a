//! What a reader of `demo.html` sees: pictures that a browser makes of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use crate::demo::DEMO;
use crate::program::tool;

type Colour = [u8; 3];

/// Colours of page.css, light and dark.
struct Theme {
    name: &'static str,
    background: Colour,
    ink: Colour,
    line: Colour,
    send: Colour,
    write: Colour,
    read: Colour,
    atomic: Colour,
    bad: Colour,
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        background: [0xff, 0xff, 0xff],
        ink: [0x1c, 0x21, 0x28],
        line: [0x98, 0xa2, 0xb0],
        send: [0x17, 0x80, 0x3d],
        write: [0x1f, 0x5f, 0xd0],
        read: [0x08, 0x7e, 0x8b],
        atomic: [0x93, 0x33, 0xa8],
        bad: [0xd1, 0x24, 0x2f],
    },
    Theme {
        name: "dark",
        background: [0x14, 0x17, 0x1c],
        ink: [0xe6, 0xe9, 0xee],
        line: [0x56, 0x60, 0x70],
        send: [0x4c, 0xc4, 0x7a],
        write: [0x6a, 0xa2, 0xff],
        read: [0x41, 0xc7, 0xd4],
        atomic: [0xd0, 0x7b, 0xe6],
        bad: [0xff, 0x6b, 0x70],
    },
];

const WIDTH: usize = 1600;
const HEIGHT: usize = 1000;
/// Where the picture begins, below title, words and names.
const TOP: usize = 210;

struct Picture {
    pixels: Vec<Colour>,
}

impl Picture {
    /// What a browser shows of the page at `fragment`; `None` where there is no browser.
    fn of(fragment: &str, theme: &Theme) -> Option<Self> {
        let mut chromium = tool("chromium", "URXE_REQUIRE_CHROMIUM")?;
        let name = format!("{}-{}", theme.name, fragment.replace(['=', '&'], "-"));
        let (profile, path) =
            (DEMO.dir.join(format!("pictured-{name}")), DEMO.dir.join(format!("{name}.png")));
        let page = fs::canonicalize(DEMO.dir.join("demo.html")).unwrap();
        chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]);
        chromium.args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
        ]);
        chromium.args(["--disable-component-update", "--disable-sync", "--hide-scrollbars"]);
        chromium.args(["--force-device-scale-factor=1", "--force-color-profile=srgb"]);
        chromium.arg(format!("--window-size={WIDTH},{HEIGHT}"));
        chromium.arg(format!("--user-data-dir={}", profile.display()));
        chromium.arg(format!("--screenshot={}", path.display()));
        let url = format!("file://{}#{fragment}&theme={}", page.display(), theme.name);
        let output = chromium.arg(url).output().unwrap();
        assert!(path.is_file(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self::read(&path))
    }

    fn read(path: &Path) -> Self {
        let mut reader =
            png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width as usize, info.height as usize), (WIDTH, HEIGHT));
        let samples = info.color_type.samples();
        assert!(samples >= 3, "{:?}", info.color_type);
        let pixels = bytes.chunks_exact(samples).map(|p| [p[0], p[1], p[2]]).collect();
        Self { pixels }
    }

    fn at(&self, x: usize, y: usize) -> Colour {
        self.pixels[y * WIDTH + x]
    }

    /// Pixels of this colour, or almost.
    fn count(&self, colour: Colour) -> usize {
        self.pixels.iter().filter(|&&p| near(p, colour, 12)).count()
    }

    /// The columns of the two upright lines.
    fn lifelines(&self, theme: &Theme) -> [usize; 2] {
        let mut columns: Vec<usize> = Vec::new();
        for x in 300..1100 {
            let is = |y: &usize| near(self.at(x, *y), theme.line, 30);
            let all = (TOP..HEIGHT).filter(is).count();
            // Letters one above the other are long strokes, too, but each is short.
            let whole = (TOP..HEIGHT - 20).any(|y| (y..y + 20).all(|y| is(&y)));
            if all > 100 && whole && columns.last().is_none_or(|last| last + 4 < x) {
                columns.push(x);
            }
        }
        columns.try_into().unwrap_or_else(|all| panic!("{}: two lines, not at {all:?}", theme.name))
    }

    /// Strokes of a colour that cross the column.
    fn strokes(&self, x: usize, colour: Colour) -> usize {
        let is = |y: usize| near(self.at(x, y), colour, 60);
        (TOP..HEIGHT).filter(|&y| is(y) && !is(y - 1)).count()
    }
}

fn near(a: Colour, b: Colour, most: u8) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= most)
}

/// How well one colour can be read on another (WCAG 2.2, 1.4.3: at least 4.5).
fn contrast(a: Colour, b: Colour) -> f64 {
    let light = |colour: Colour| {
        let [r, g, b] = colour.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (light(a) + 0.05, light(b) + 0.05);
    if a > b { a / b } else { b / a }
}

/// The first step: two lines, and between them three packets of one colour that reach both.
#[test]
fn both_lines_and_the_arrows_between_them_are_drawn() {
    for theme in &THEMES {
        let Some(picture) = Picture::of("step=1", theme) else { return };
        let [alice, bob] = picture.lifelines(theme);
        assert!(bob - alice > 300, "{}: lines at {alice} and {bob}", theme.name);
        // Behind the labels, before the arrowheads.
        let x = alice + (bob - alice) * 9 / 10;
        assert_eq!(picture.strokes(x, theme.send), 3, "{}: arrows of a SEND", theme.name);
        let middle = picture.at((alice + bob) / 2, HEIGHT - 20);
        assert!(near(middle, theme.background, 2), "{}: {middle:?}", theme.name);
        assert!(picture.count(theme.ink) > 1000, "{}: text", theme.name);
    }
}

/// The step with losses, as a whole: all kinds of packets, and the marks of those lost.
#[test]
fn a_long_step_is_drawn_in_all_its_colours() {
    for theme in &THEMES {
        let Some(picture) = Picture::of("step=8&zoom=0.15", theme) else { return };
        let [alice, bob] = picture.lifelines(theme);
        assert!(bob - alice > 300);
        let kinds = [theme.send, theme.write, theme.read, theme.atomic, theme.bad];
        let drawn: BTreeMap<_, _> = kinds.iter().map(|&kind| (kind, picture.count(kind))).collect();
        assert!(drawn.values().all(|&n| n > 100), "{}: {drawn:?}", theme.name);
    }
}

/// A packet that is picked stands out, and the panel beside the picture fills with its fields.
#[test]
fn a_picked_packet_is_shown_with_its_fields() {
    for theme in &THEMES {
        let Some(calm) = Picture::of("step=2", theme) else { return };
        let Some(picked) = Picture::of("step=2&packet=1", theme) else { return };
        let right = |p: &Picture| {
            let panel = (0..HEIGHT).flat_map(|y| (1120..WIDTH).map(move |x| (x, y)));
            panel.filter(|&(x, y)| near(p.at(x, y), theme.ink, 40)).count()
        };
        assert!(right(&picked) > right(&calm), "{}", theme.name);
    }
}

#[test]
fn every_colour_can_be_read() {
    for theme in &THEMES {
        let Theme { background, .. } = *theme;
        let all = [theme.ink, theme.send, theme.write, theme.read, theme.atomic, theme.bad];
        for colour in all {
            let ratio = contrast(colour, background);
            assert!(ratio >= 4.5, "{}: {colour:?} on {background:?}: {ratio:.2}", theme.name);
        }
        // The page has them so.
        let page = fs::read_to_string(DEMO.dir.join("demo.html")).unwrap();
        for [r, g, b] in all.into_iter().chain([background, theme.line]) {
            assert!(page.contains(&format!("#{r:02x}{g:02x}{b:02x}")), "{r:02x}{g:02x}{b:02x}");
        }
    }
}
