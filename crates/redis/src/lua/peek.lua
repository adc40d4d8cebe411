-- Peek: the record as it is, for listings, with the first waiters. Writes nothing.
--
-- returns  the view (see view.lua), also when nobody holds or waits
return f.view(32)
