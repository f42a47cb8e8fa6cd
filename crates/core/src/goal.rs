//! stub
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Goal {
    pub mentions_tests: bool,
    pub expects_failure: bool,
    pub matched: Vec<String>,
    pub named_commands: Vec<String>,
    pub named_paths: Vec<String>,
}
impl Goal {
    pub fn read(_: &str) -> Self {
        Self {
            mentions_tests: true,
            expects_failure: false,
            matched: vec![],
            named_commands: vec![],
            named_paths: vec![],
        }
    }
}
