/// Groups the connections of one turn by their frames, so that each connection gets one write.
///
/// Each channel divides the groups: members of a group that are also in the channel move to a new group. The cost is a few instructions
/// per subscription, in reused memory. Connections excluded from a frame (`socket_id` of a publish) end in groups of their own.
struct Gathering: ~Copyable {
    struct Group: BitwiseCopyable {
        /// The members' group before `channel` was processed; 0: none.
        var parent: UInt32
        /// Index in the turn of the group's last channel.
        var channel: UInt32
        /// Number of the group's channels.
        var depth: UInt32
        var count: UInt32 = 0
        /// Index of the last channel that divided this group, plus one.
        var dividedBy: UInt32 = 0
        /// Group that the members moved to.
        var child: UInt32 = 0
        /// The only member of a group that some frames exclude.
        var loner = Gathering.nobody
        /// Start of the group in `members`; `nobody` if the group is a channel's complete list of subscribers.
        var start = Gathering.nobody
    }

    static let nobody = UInt32.max

    /// The first group stands for connections that no channel has reached yet.
    private(set) var groups = Scratch<Group>()
    private(set) var members = Scratch<UInt32>()
    /// Group numbers by slot. Numbers up to `base` belong to earlier turns and are invalid.
    private var groupOfSlot = Scratch<UInt32>()
    private var base: UInt32 = 0

    /// Groups per turn: more than the subscriptions of a loop, and far below the end of the numbers.
    private static let groupsMax: UInt32 = 1 << 30

    /// Called before a connection in this slot subscribes, so that `divide` needs no bounds check.
    mutating func makeRoom(forSlot slot: Int) { groupOfSlot.extend(to: slot + 1, with: 0) }

    mutating func begin() {
        // Invalidates the last turn's groups. The table is cleared only if the numbers run out.
        base += UInt32(groups.count)
        if base > UInt32.max - Self.groupsMax {
            unsafe groupOfSlot.base.update(repeating: 0, count: groupOfSlot.count)
            base = 0
        }
        assert(base <= UInt32.max - Self.groupsMax, "groups are numbered from \(base) on")
        groups.count = 0
        groups.append(Group(parent: 0, channel: 0, depth: 0))
        members.count = 0
    }

    /// Fast path for a turn with one channel, whose subscribers get everything.
    mutating func takeWhole(_ subscribers: Int) {
        begin()
        groups.append(Group(parent: 0, channel: 0, depth: 1, count: UInt32(subscribers)))
    }

    /// Processes the turn's next channel.
    mutating func divide(by channel: Int, _ slots: UnsafeBufferPointer<UInt32>) {
        groups.reserve(groups.count + min(groups.count, slots.count))
        let groups = unsafe self.groups.base
        var groupCount = self.groups.count
        let base = base
        let mark = UInt32(channel + 1)
        let table = unsafe groupOfSlot.base
        var from = Self.nobody
        var to: UInt32 = 0
        // Start of the run of subscribers that move between the same two groups.
        var begin = 0
        for index in 0..<slots.count {
            let slot = Int(unsafe slots[index])
            assert(slot < groupOfSlot.count, "no room was made for slot \(slot)")
            let place = unsafe table + slot
            let known = unsafe place.pointee
            let group = known > base ? known &- base : 0
            assert(Int(group) < self.groups.count, "slot \(slot) stands twice in channel \(channel), or in no group of this turn")
            if group != from {
                if index > begin { unsafe Self.move(UInt32(index - begin), from, to, groups) }
                (from, begin) = (group, index)
                let origin = unsafe groups + Int(group)
                if unsafe origin.pointee.dividedBy != mark {
                    unsafe origin.pointee.dividedBy = mark
                    unsafe origin.pointee.child = UInt32(groupCount)
                    unsafe (groups + groupCount).initialize(
                        to: Group(parent: group, channel: UInt32(channel), depth: origin.pointee.depth + 1))
                    groupCount += 1
                }
                to = unsafe origin.pointee.child
            }
            unsafe place.pointee = base &+ to
        }
        if slots.count > begin { unsafe Self.move(UInt32(slots.count - begin), from, to, groups) }
        assert(groupCount <= self.groups.capacity, "\(groupCount) groups in room for \(self.groups.capacity)")
        self.groups.count = groupCount
    }

    private static func move(_ count: UInt32, _ from: UInt32, _ to: UInt32, _ groups: UnsafeMutablePointer<Group>) {
        // The first group's count is meaningless.
        unsafe groups[Int(from)].count &-= count
        unsafe groups[Int(to)].count += count
    }

    /// Moves a member that some frame excludes out of its group.
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

    /// Assigns a place in `members` to every group that is not a whole channel.
    /// - Returns: the number of members for `list`.
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
        assert(Int(total) <= groupOfSlot.count, "\(total) members of \(groupOfSlot.count) slots")
        members.reserve(Int(total))
        members.count = Int(total)
        return Int(total)
    }

    private func isWhole(_ group: Group, _ subscribers: Int) -> Bool { group.depth == 1 && Int(group.count) == subscribers }

    /// Lists the members of groups whose last channel is this one.
    mutating func list(_ channel: Int, _ slots: UnsafeBufferPointer<UInt32>) {
        let (base, groups, members, table) = unsafe (base, self.groups.base, self.members.base, groupOfSlot.base)
        for unsafe slot in unsafe slots {
            let group = unsafe groups + Int(table[Int(slot)] &- base)
            guard unsafe group.pointee.channel == channel, unsafe group.pointee.loner == Self.nobody else { continue }
            // The group is the whole channel and needs no list.
            if unsafe group.pointee.start == Self.nobody { return }
            assert(unsafe Int(group.pointee.start + group.pointee.count) < self.members.count, "slot \(slot) has no place in its group")
            unsafe members[Int(group.pointee.start + group.pointee.count)] = slot
            unsafe group.pointee.count += 1
        }
    }
}
