/// The page's style sheet: light, or dark if the reader's system is. The lines' colours keep their order in both.
enum PageStyle {
    static let sheet: StaticString = """
        :root { color-scheme: light dark; --page: #fcfcfb; --card: #ffffff; --ink: #1c1c1a; --soft: #5f5e5a; --edge: #e2e1dc; --grid: #d9d8d2;
          --warn: #8a5a00; --warn-back: #fff6e0; --good: #12703a; --bad: #b3261e;
          --s0: #2a6fdb; --s1: #5f6368; --s2: #0f8a6a; --s3: #c2560a; --s4: #9136b8; --s5: #b8326f; --s6: #7a6a00; --s7: #0a7c94; }
        @media (prefers-color-scheme: dark) { :root { --page: #181817; --card: #20201f; --ink: #ecebe6; --soft: #a5a49d; --edge: #383733;
          --grid: #3b3a36; --warn: #f2c266; --warn-back: #33290f; --good: #6bcf94; --bad: #ff8f85;
          --s0: #6ba4ff; --s1: #a9adb3; --s2: #45c9a3; --s3: #f09150; --s4: #c78bea; --s5: #f07fae; --s6: #cbb74a; --s7: #54c2da; } }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
        main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
        h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
        h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; overflow-wrap: anywhere; }
        h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; font-weight: 600; overflow-wrap: anywhere; }
        p { margin: .5rem 0; } .soft { color: var(--soft); }
        .warnings { background: var(--warn-back); color: var(--warn); border-radius: 6px; padding: .75rem 1rem; margin: 1.25rem 0; }
        .warnings ul { margin: .25rem 0 0; padding-left: 1.2rem; } .warnings li { overflow-wrap: anywhere; }
        .wide { overflow-x: auto; }
        table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
        th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--edge); vertical-align: top; }
        th { font-weight: 600; color: var(--soft); font-size: .85rem; } td.number, th.number { text-align: right; white-space: nowrap; }
        td.text { overflow-wrap: anywhere; min-width: 6.5rem; } .range { color: var(--soft); font-size: .8rem; }
        .good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
        svg { display: block; width: 100%; height: auto; font-size: 12px; } svg text { fill: var(--soft); } svg text.name { fill: var(--ink); }
        .grid { stroke: var(--grid); stroke-width: 1; } .grid.faint { opacity: .45; }
        .line { fill: none; stroke-width: 2; stroke-linejoin: round; } .band { opacity: .14; stroke: none; }
        .bar { opacity: .85; } .whisker { stroke: var(--ink); stroke-width: 1.5; }
        .key { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; margin: .25rem 0 .5rem; padding: 0; list-style: none; font-size: .87rem; }
        .key li::before { content: ""; display: inline-block; width: .85rem; height: .25rem; border-radius: 2px; margin-right: .4rem;
          vertical-align: middle; background: var(--c); }
        .key .s0 { --c: var(--s0); } .key .s1 { --c: var(--s1); } .key .s2 { --c: var(--s2); } .key .s3 { --c: var(--s3); }
        .key .s4 { --c: var(--s4); } .key .s5 { --c: var(--s5); } .key .s6 { --c: var(--s6); } .key .s7 { --c: var(--s7); }
        .line.s0 { stroke: var(--s0); } .line.s1 { stroke: var(--s1); } .line.s2 { stroke: var(--s2); } .line.s3 { stroke: var(--s3); }
        .line.s4 { stroke: var(--s4); } .line.s5 { stroke: var(--s5); } .line.s6 { stroke: var(--s6); } .line.s7 { stroke: var(--s7); }
        .bar.s0, .band.s0 { fill: var(--s0); } .bar.s1, .band.s1 { fill: var(--s1); } .bar.s2, .band.s2 { fill: var(--s2); }
        .bar.s3, .band.s3 { fill: var(--s3); } .bar.s4, .band.s4 { fill: var(--s4); } .bar.s5, .band.s5 { fill: var(--s5); }
        .bar.s6, .band.s6 { fill: var(--s6); } .bar.s7, .band.s7 { fill: var(--s7); }
        """
    static let colours = 8
}
