-- Inspect: the record after everything that is due has been done.
--
-- returns  at, more, then the view (see view.lua)
foresee({'v'})
settle()
return finish({view()})
