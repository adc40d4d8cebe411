-- Release, fast path: the only hold, exclusive or shared, with nobody waiting and nothing to remember.
--
-- ARGV[1]  limits, then: whether a not-after is named, the not-after, whether a claim follows, that claim
-- ARGV[3]  the holder id to end
-- ARGV[4]  with a claim: its holder id
-- ARGV[5]  with a claim: inbox, public id, who
-- returns  at, more, what parted (1 hold, 2 place, 0 nothing), then the verdict on the claim if there is one
-- cost     4 redis.calls in all (TIME, HMGET, PEXPIREAT, HSET); PEXPIREAT comes first so that it works without memory
local retention, longest, room, sharers, work, named, not_after, again, rest =
  struct.unpack('>I8I8I4I4I4BI8B', ARGV[1])
if named == 0 and again == 0 and opened[1] and not opened[2] then
  local last, seen, expires, late, n = struct.unpack('>I8I8I8I8I4', opened[1])
  if n == 1 and expires > now and seen <= now then
    local holder, till, revoked = struct.unpack('>c24I8B', opened[3])
    if holder == ARGV[3] and till > now and revoked == 0 then
      expires = now + math.max(0, math.ceil((last - us) / 1000)) + retention
      redis.call('PEXPIREAT', key, expires)
      redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4', last, now, expires, 0, 0), 'h1', '')
      return {now, 0, 1}
    end
  end
end
local grows = false
