import StoreTesting
import Testing

@Suite("Every store")
struct StoreContractTests {
    @Test("keeps the store contract", arguments: TestedStore.present, StoreContract.all)
    func contract(store: TestedStore, rule: StoreContract) async throws {
        try await store.withEmptyStore(rule.check)
    }
}
