-- Release, fast path: the only hold, exclusive or shared, with nobody waiting and nothing to remember.
--
-- numbers, from  ARGV[1] and where its retention stands; card  ARGV[2] (alone.lua; in a bundle a function's arguments)
-- ARGV[1]  then: whether a not-after is named, the not-after, whether a claim follows, that claim as for acquire
-- ARGV[2]  the holder id to end
-- ARGV[3]  with a claim: its card
-- returns  at: released, nothing left over. Else at, more, what parted (1 hold, 2 place, 0 nothing), then the
--          verdict on the claim if there is one; behind nothing, at the end, the audit if there is one
-- cost     4 redis.calls in all (TIME, MGET, PEXPIREAT, SET); PEXPIREAT comes first so that it works without memory
local retention, longest, named, not_after, again = struct.unpack('>I8I8BI8B', numbers, from)
if named == 0 and again == 0 and plain and string.find(s, card, 84, true) == 84 then
  local last, seen, expires, _, _, _, till = struct.unpack('>I8I8I8I8I4BI8', s)
  if expires > now and seen <= now and till > now then
    expires = now + retention
    if last > us then
      expires = expires + math.ceil((last - us) / 1000)
    end
    redis.call('PEXPIREAT', key, string.format('%d', expires))
    redis.call('SET', key, struct.pack('>I8I8I8I8I4B', last, now, expires, 0, 0, 0), 'KEEPTTL')
    return now
  end
end
