/// Sorts the connections of one turn into groups that get the same frames, so that each of them gets one write.
///
/// Channel by channel the groups are divided: who is in a group and in the next channel, too, goes on to a group of its own. That takes a few
/// instructions for each subscription and no memory that is not used again. Connections that are left out of a frame
/// (`socket_id` of a publish) stand alone in the end.
struct Gathering: ~Copyable {
    struct Group: BitwiseCopyable {
        /// The group its members were in before `channel` was looked at; 0: in none.
        var parent: UInt32
        /// Place of the last of its channels among those of the turn.
        var channel: UInt32
        /// How many channels it is in.
        var depth: UInt32
        var count: UInt32 = 0
        /// The last channel that divided it, plus one, and the group its members went to.
        var dividedBy: UInt32 = 0
        var child: UInt32 = 0
        /// The one member of a group that is left out of some frames.
        var loner = Gathering.nobody
        /// Where its members begin in `members`; `nobody` for a channel whose subscribers are all in this group.
        var start = Gathering.nobody
    }

    static let nobody = UInt32.max

    /// The first stands for the connections that have not been met yet.
    private(set) var groups = Scratch<Group>()
    private(set) var members = Scratch<UInt32>()
    /// By slot; numbers up to `base` are of earlier turns and mean nothing.
    private var groupOfSlot = Scratch<UInt32>()
    private var base: UInt32 = 0

    /// Groups one turn can have: far more than subscriptions fit in a loop, and far from the end of the numbers.
    private static let groupsMax: UInt32 = 1 << 30

    /// Before a connection in this slot is among a channel's subscribers, so that `divide` need not look.
    mutating func makeRoom(forSlot slot: Int) { groupOfSlot.extend(to: slot + 1, with: 0) }

    mutating func begin() {
        // What the last turn gave out ends here; the table is cleared only when the numbers run out.
        base += UInt32(groups.count)
        if base > UInt32.max - Self.groupsMax {
            unsafe groupOfSlot.base.update(repeating: 0, count: groupOfSlot.count)
            base = 0
        }
        groups.count = 0
        groups.append(Group(parent: 0, channel: 0, depth: 0))
        members.count = 0
    }

    /// The turn has one channel, whose subscribers get all of it.
    mutating func takeWhole(_ subscribers: Int) {
        begin()
        groups.append(Group(parent: 0, channel: 0, depth: 1, count: UInt32(subscribers)))
    }

    /// Looks at the turn's next channel.
    mutating func divide(by channel: Int, _ slots: UnsafeBufferPointer<UInt32>) {
        groups.reserve(groups.count + min(groups.count, slots.count))
        let groups = unsafe self.groups.base
        var groupCount = self.groups.count
        let base = base
        let mark = UInt32(channel + 1)
        let table = unsafe groupOfSlot.base
        var from = Self.nobody
        var to: UInt32 = 0
        // Where those begin who go from the one group to the other.
        var begin = 0
        for index in 0..<slots.count {
            let slot = Int(unsafe slots[index])
            assert(slot < groupOfSlot.count, "no room was made for slot \(slot)")
            let place = unsafe table + slot
            let known = unsafe place.pointee
            let group = known > base ? known &- base : 0
            if group != from {
                if index > begin { unsafe Self.move(UInt32(index - begin), from, to, groups) }
                (from, begin) = (group, index)
                let origin = unsafe groups + Int(group)
                if unsafe origin.pointee.dividedBy != mark {
                    unsafe origin.pointee.dividedBy = mark
                    unsafe origin.pointee.child = UInt32(groupCount)
                    unsafe (groups + groupCount).initialize(to: Group(parent: group, channel: UInt32(channel), depth: origin.pointee.depth + 1))
                    groupCount += 1
                }
                to = unsafe origin.pointee.child
            }
            unsafe place.pointee = base &+ to
        }
        if slots.count > begin { unsafe Self.move(UInt32(slots.count - begin), from, to, groups) }
        self.groups.count = groupCount
    }

    private static func move(_ count: UInt32, _ from: UInt32, _ to: UInt32, _ groups: UnsafeMutablePointer<Group>) {
        // The first group's number means nothing.
        unsafe groups[Int(from)].count &-= count
        unsafe groups[Int(to)].count += count
    }

    /// A member that some frame is not for leaves its group.
    mutating func isolate(_ slot: UInt32) {
        guard Int(slot) < groupOfSlot.count, case let known = unsafe groupOfSlot.base[Int(slot)], known > base else { return }
        let group = unsafe groups.base[Int(known - base)]
        if group.loner == slot { return }
        unsafe groups.base[Int(known - base)].count -= 1
        unsafe groupOfSlot.base[Int(slot)] = base + UInt32(groups.count)
        var alone = Group(parent: group.parent, channel: group.channel, depth: group.depth)
        alone.count = 1
        alone.loner = slot
        groups.append(alone)
    }

    /// Gives every group that is not a whole channel its place in `members`.
    /// - Returns: how many members there are, for `list`.
    mutating func layOut(subscribers: (_ channel: Int) -> Int) -> Int {
        var total: UInt32 = 0
        for index in 1..<max(1, groups.count) {
            let group = unsafe groups.base[index]
            if group.count == 0 || group.loner != Self.nobody || isWhole(group, subscribers(Int(group.channel))) { continue }
            unsafe groups.base[index].start = total
            // Counted again by `list`.
            unsafe groups.base[index].count = 0
            total += group.count
        }
        members.reserve(Int(total))
        members.count = Int(total)
        return Int(total)
    }

    private func isWhole(_ group: Group, _ subscribers: Int) -> Bool { group.depth == 1 && Int(group.count) == subscribers }

    /// Lists the members of the groups whose last channel this is.
    mutating func list(_ channel: Int, _ slots: UnsafeBufferPointer<UInt32>) {
        let (base, groups, members, table) = unsafe (base, self.groups.base, self.members.base, groupOfSlot.base)
        for unsafe slot in unsafe slots {
            let group = unsafe groups + Int(table[Int(slot)] &- base)
            guard unsafe group.pointee.channel == channel, unsafe group.pointee.loner == Self.nobody else { continue }
            // All the subscribers are in it, and need no list.
            if unsafe group.pointee.start == Self.nobody { return }
            unsafe members[Int(group.pointee.start + group.pointee.count)] = slot
            unsafe group.pointee.count += 1
        }
    }
}
