//! What can go wrong with a lab.

use std::io;
use std::path::PathBuf;

/// Why a lab, or something in it, did not work.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine cannot run one: a suite skips, and says why.
    #[error("{0}")]
    CannotRun(String),
    /// A program failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// As it was run.
        command: String,
        /// Its status and what it wrote.
        output: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A guest did not come up, or went.
    #[error("guest {guest}: {problem}; its console ended with:\n{console}")]
    Guest {
        /// Its number.
        guest: u8,
        /// What happened.
        problem: String,
        /// The last lines of its console.
        console: String,
    },
    /// A guest's kernel died.
    #[error(transparent)]
    Died(#[from] crate::Died),
    /// A guest's agent refused a request.
    #[error("the agent was asked `{request}` and answered `{answer}`")]
    Refused {
        /// The request.
        request: String,
        /// The answer, which begins with `err`.
        answer: String,
    },
    /// Talking to an agent failed.
    #[error("the agent was asked `{request}`: {error}")]
    Lost {
        /// The request.
        request: String,
        /// Why there is no answer.
        error: io::Error,
    },
}

impl LabError {
    /// An error about the file at `path`.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { path, error }
    }
}
