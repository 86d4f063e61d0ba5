extension Server {
    /// Returns when every loop has handled a message that is sent now. A loop that hangs keeps it waiting, until the task is cancelled.
    package func proveLiveness() async { _ = await figuresOfLoops() }
}
