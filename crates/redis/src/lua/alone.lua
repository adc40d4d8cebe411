-- What the fast path of a claim or a release looks at in a call for one lock; in a bundle they are arguments.
local numbers, from, card = ARGV[1], 13, ARGV[2]
