// Generated from contracts/ by `npm run abi`: the deployed code's hash with zeros for immutables, and their places in bytes.
export const DEPLOYED_CODE = {
  factory: {
    hash: "0x759dfb7ea8b076cab5c85f8ed152106e1c424c3b944368a39acc201cb4f01861",
    immutables: {
      implementation: [5278, 8236],
    },
  },
  implementation: {
    hash: "0xfbd89d774537f397469909c3665f7da45b4446a20bfcd875517dd763dee5660a",
    immutables: {
      factory: [10401, 11482, 17038],
      asset: [3644, 7772, 10446, 14890, 18177, 19685, 21304, 21508, 21734, 23265],
      relay: [459, 6598, 10488, 14727, 20733, 20907],
      registry: [5896, 10533, 13120],
      protocolToken: [10572, 18602],
    },
  },
} as const;
