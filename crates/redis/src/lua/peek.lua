-- Peek: the record as it is, for listings. Writes nothing.
--
-- returns  the view (see view.lua), or an empty list when nobody holds or waits
return view()
