-- What release_fast.lua keeps from one release for the next.
local rest, rest_end
