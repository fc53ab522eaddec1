! Marks for the exporter of CEEMS (docs/marks.md). Compile with ceems_mark.h:
!   cc -x c -DCEEMS_MARK_API= -c ceems_mark.h -o ceems_mark_c.o
!   gfortran program.f90 ceems_mark.f90 ceems_mark_c.o     (the module first where the compiler does not sort sources)
! Calls never wait, and do nothing where there is no exporter.
module ceems_mark
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_char
  implicit none
  private
  public :: mark_begin, mark_end, mark_result, mark_progress, mark_fom

  interface
    integer(c_int) function c_begin(name) bind(C, name="ceems_mark_begin")
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_end(name) bind(C, name="ceems_mark_end")
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_result(name, n, unit) bind(C, name="ceems_mark_result")
      import :: c_char, c_double, c_int
      character(kind=c_char), intent(in) :: name(*), unit(*)
      real(c_double), value :: n
    end function
    integer(c_int) function c_progress(n, name) bind(C, name="ceems_mark_progress")
      import :: c_char, c_double, c_int
      real(c_double), value :: n
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_fom(name, value, unit) bind(C, name="ceems_mark_fom")
      import :: c_char, c_double, c_int
      character(kind=c_char), intent(in) :: name(*), unit(*)
      real(c_double), value :: value
    end function
  end interface

contains

  subroutine mark_begin(name)
    character(len=*), intent(in) :: name
    integer(c_int) :: dropped
    dropped = c_begin(trim(name)//c_null_char)
  end subroutine

  subroutine mark_end(name)
    character(len=*), intent(in) :: name
    integer(c_int) :: dropped
    dropped = c_end(trim(name)//c_null_char)
  end subroutine

  ! n more results; unit is a unit of measurement, such as "ns".
  subroutine mark_result(name, n, unit)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: n
    character(len=*), intent(in), optional :: unit
    integer(c_int) :: dropped
    if (present(unit)) then
      dropped = c_result(trim(name)//c_null_char, n, trim(unit)//c_null_char)
    else
      dropped = c_result(trim(name)//c_null_char, n, c_null_char)
    end if
  end subroutine

  ! The same by a running number: the first one of a run is where counting begins.
  subroutine mark_progress(n, name)
    real(c_double), intent(in) :: n
    character(len=*), intent(in) :: name
    integer(c_int) :: dropped
    dropped = c_progress(n, trim(name)//c_null_char)
  end subroutine

  ! A figure of merit, such as ("speed", 83.2d0, "ns/day").
  subroutine mark_fom(name, value, unit)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value
    character(len=*), intent(in), optional :: unit
    integer(c_int) :: dropped
    if (present(unit)) then
      dropped = c_fom(trim(name)//c_null_char, value, trim(unit)//c_null_char)
    else
      dropped = c_fom(trim(name)//c_null_char, value, c_null_char)
    end if
  end subroutine

end module ceems_mark
