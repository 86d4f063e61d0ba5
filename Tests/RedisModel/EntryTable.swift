internal import HubCore

/// A stream: entries by id, oldest first.
struct EntryTable: Sendable {
    private(set) var items: ArraySlice<(id: StreamID, fields: [[UInt8]])> = []
    /// Id of the last entry that ever was.
    private var last = StreamID.zero

    /// - Parameter now: milliseconds. Ids grow even when it does not.
    mutating func append(_ fields: [[UInt8]], now: Int64) -> StreamID {
        let time = UInt64(max(0, now))
        last = time > last.milliseconds ? StreamID(milliseconds: time) : StreamID(milliseconds: last.milliseconds, number: last.number + 1)
        items.append((last, fields))
        return last
    }

    /// The oldest entries behind an id.
    func entries(after id: StreamID, most: Int) -> ArraySlice<(id: StreamID, fields: [[UInt8]])> {
        items[first { $0 > id }...].prefix(most)
    }

    /// Drops what is older than the id.
    /// - Returns: how many entries that were.
    mutating func trim(before id: StreamID) -> Int {
        let count = first { $0 >= id } - items.startIndex
        items.removeFirst(count)
        return count
    }

    private func first(_ isTrue: (StreamID) -> Bool) -> Int {
        var (low, high) = (items.startIndex, items.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isTrue(items[middle].id) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
